//! Each limit is said by its name when it is crossed.

use std::fs;

use serde_json::json;

use crate::served::{Served, only_text};

#[tokio::test]
async fn sizes() {
    let served = Served::with(&[
        "--writable",
        "--max-text-bytes",
        "10",
        "--max-image-bytes",
        "12",
        "--max-result-bytes",
        "300",
    ])
    .await;
    served.put("ten.txt", "0123456789");
    served.put("eleven.txt", "01234567890");
    served.put("fits.png", b"\x89PNG\r\n\x1a\n1234");
    served.put("large.png", b"\x89PNG\r\n\x1a\n12345");
    assert_eq!(
        served
            .text("read_text_file", json!({"file_path": "/ten.txt"}))
            .await,
        "0123456789"
    );
    assert_eq!(
        served
            .failure("read_text_file", json!({"file_path": "/eleven.txt"}))
            .await,
        "Failed to read text file: /eleven.txt: the file has 11 bytes, the limit max_text_bytes is 10"
    );
    assert_eq!(
        served
            .call("read_image_file", json!({"file_path": "/fits.png"}))
            .await
            .is_error,
        Some(false)
    );
    assert_eq!(
        served
            .failure("read_image_file", json!({"file_path": "/large.png"}))
            .await,
        "Failed to read image file: /large.png: the file has 13 bytes, the limit max_image_bytes is 12"
    );
    assert_eq!(
        served
            .failure(
                "write_file",
                json!({"file_path": "/new.txt", "content": "01234567890"})
            )
            .await,
        "Failed to write file: /new.txt: the content has 11 bytes, the limit max_text_bytes is 10"
    );
    let growing = json!({"file_path": "/ten.txt", "old_text": "9", "new_text": "99"});
    assert_eq!(
        served.failure("edit_file", growing).await,
        "Failed to edit file: /ten.txt: the content has 11 bytes, the limit max_text_bytes is 10"
    );
    for number in 0..20 {
        served.put(&format!("many/{number}"), "");
    }
    let reason = served.failure("list_files", json!({"path": "/many"})).await;
    assert!(
        reason.starts_with("The result would have ")
            && reason.ends_with("the limit max_result_bytes is 300"),
        "{reason}"
    );
}

#[tokio::test]
async fn numbers_of_entries_and_levels() {
    let flags = [
        "--max-listed-entries",
        "3",
        "--max-scanned-entries",
        "8",
        "--max-search-depth",
        "2",
    ];
    let served = Served::with(&flags).await;
    for number in 0..5 {
        served.put(&format!("five/{number}"), "");
    }
    assert_eq!(
        served.text("list_files", json!({"path": "/five"})).await,
        "'0' (unknown file) 0 bytes\n'1' (unknown file) 0 bytes\n'2' (unknown file) 0 bytes\n... (truncated at 3 entries)\n"
    );
    for max_results in [0, 100] {
        assert_eq!(
            served
                .text(
                    "search_files",
                    json!({"pattern": "?", "path": "/five", "max_results": max_results})
                )
                .await,
            "Found 3 file(s) matching '?':\n/five/0\n/five/1\n/five/2\n\n(Results limited to 3)"
        );
    }
    served.put("deep/1/2/3/x", "");
    assert_eq!(
        served
            .text("search_files", json!({"pattern": "x", "path": "/deep"}))
            .await,
        "No files matching 'x' found in /deep\n\n(Folders more than 2 levels down were not searched)"
    );
    for number in 0..20 {
        fs::create_dir(served.world().join("five").join(format!("folder{number}"))).unwrap();
    }
    let scanned = "stopped after looking at 8 entries, the limit max_scanned_entries";
    let search = served
        .text("search_files", json!({"pattern": "no", "path": "/five"}))
        .await;
    assert!(search.ends_with(&format!("(Search {scanned})")), "{search}");
    let tree = served
        .text("get_directory_tree", json!({"path": "/five"}))
        .await;
    assert!(tree.ends_with(&format!("... ({scanned})")), "{tree}");
}

#[tokio::test]
async fn time() {
    let served = Served::with(&["--max-scan-time", "0"]).await;
    served.put("a.txt", "");
    let stopped = "stopped after 0 s, the limit max_scan_time";
    assert_eq!(
        served.text("list_files", json!({})).await,
        format!("... ({stopped})\n")
    );
    assert_eq!(
        served
            .text("search_files", json!({"pattern": "*", "path": "/"}))
            .await
            .lines()
            .last()
            .unwrap(),
        format!("(Search {stopped})")
    );
}

#[tokio::test]
async fn a_huge_folder_is_answered() {
    let served = Served::with(&[]).await;
    fs::create_dir(served.world().join("huge")).unwrap();
    for number in 0..12_000 {
        fs::File::create(served.world().join(format!("huge/{number:05}.csv"))).unwrap();
    }
    let text = served.text("list_files", json!({"path": "/huge"})).await;
    assert_eq!(text.lines().count(), 10_001);
    assert!(
        text.ends_with("'09999.csv' (text/csv file) 0 bytes\n... (truncated at 10000 entries)\n")
    );
    let found = served
        .text("search_files", json!({"pattern": "1199?.csv"}))
        .await;
    assert!(
        found.starts_with("Found 10 file(s)") && found.ends_with("/huge/11999.csv"),
        "{found}"
    );
}

#[tokio::test]
async fn calls_run_side_by_side_and_each_gets_its_own_answer() {
    let served = Served::with(&["--max-concurrent-calls", "4"]).await;
    for number in 0..100 {
        served.put(&format!("{number}.txt"), format!("content {number}"));
    }
    let calls = (0..100).map(|number| {
        served.call(
            "read_text_file",
            json!({"file_path": format!("/{number}.txt")}),
        )
    });
    let answers = futures::future::join_all(calls).await;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(only_text(answer), format!("content {number}"));
    }
}
