//! Worlds in every form, as the environment receives them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use formats::owner::Owner;
use sandbox::{ClientSettings, EnvironmentClient};
use snapshot::World;

use crate::stub::{Script, Stub};

fn write(path: PathBuf, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn zip_of(folder: &Path, to: &Path) {
    let file = std::fs::File::create(to).unwrap();
    World::open(folder).unwrap().write_zip(file).unwrap();
}

/// Fills a stub from `world` and returns the files that it received, by subsystem.
async fn received(world: &Path, temporary: &Path) -> BTreeMap<String, Vec<(String, String)>> {
    let stub = Stub::start(Script::default()).await;
    let settings = ClientSettings {
        temporary_root: temporary.to_owned(),
        ..ClientSettings::default()
    };
    let client = EnvironmentClient::new(&stub.url(), settings).unwrap();
    let populated = client.populate_world(world).await.unwrap();
    let sent = std::mem::take(&mut stub.script.lock().unwrap().populated);
    assert_eq!(populated.len(), sent.len());
    assert_eq!(
        std::fs::read_dir(temporary).unwrap().count(),
        0,
        "converted archives are left"
    );
    sent.into_iter()
        .map(|(subsystem, bytes)| (subsystem, files(&bytes)))
        .collect()
}

/// Paths and contents of the files in a `tar.gz`, as the system's `tar` sees them.
fn files(bytes: &[u8]) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.tar.gz"), bytes).unwrap();
    let tar = |args: &[&str]| {
        let output = std::process::Command::new("tar")
            .args(args)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let listed = tar(&["-tzf", "a.tar.gz"]);
    let paths = listed.lines().filter(|path| !path.ends_with('/'));
    paths
        .map(|path| (path.to_owned(), tar(&["-xzOf", "a.tar.gz", path])))
        .collect()
}

fn file(path: &str, text: &str) -> (String, String) {
    (path.to_owned(), text.to_owned())
}

#[tokio::test]
async fn both_subsystems_are_sent_without_their_prefix() {
    let place = tempfile::tempdir().unwrap();
    let (folder, temporary) = (place.path().join("world"), place.path().join("tmp"));
    std::fs::create_dir(&temporary).unwrap();
    write(folder.join("filesystem/animals/a/x.txt"), "gorilla");
    write(folder.join("filesystem/empty.txt"), "");
    write(folder.join(".apps_data/mail/inbox.json"), "[]");
    let expected = BTreeMap::from([
        (
            "filesystem".to_owned(),
            vec![file("animals/a/x.txt", "gorilla"), file("empty.txt", "")],
        ),
        (".apps_data".to_owned(), vec![file("mail/inbox.json", "[]")]),
    ]);
    assert_eq!(received(&folder, &temporary).await, expected);

    let zip = place.path().join("original_snapshot.zip");
    zip_of(&folder, &zip);
    assert_eq!(received(&zip, &temporary).await, expected);
}

#[tokio::test]
async fn a_world_without_subsystems_is_the_file_system() {
    let place = tempfile::tempdir().unwrap();
    let (folder, temporary) = (place.path().join("world"), place.path().join("tmp"));
    std::fs::create_dir(&temporary).unwrap();
    write(folder.join("notes/a.txt"), "a");
    let received = received(&folder, &temporary).await;
    let expected = [("filesystem".to_owned(), vec![file("notes/a.txt", "a")])];
    assert_eq!(received, BTreeMap::from(expected));
}

#[tokio::test]
async fn a_world_that_cannot_be_used_is_a_mistake_of_the_configuration() {
    let stub = Stub::start(Script::default()).await;
    let client = EnvironmentClient::new(&stub.url(), ClientSettings::default()).unwrap();
    let place = tempfile::tempdir().unwrap();
    let broken = place.path().join("broken.zip");
    std::fs::write(&broken, "PK\x03\x04 and then nothing").unwrap();
    for world in [&broken, &place.path().join("missing.zip")] {
        let error = client.populate_world(world).await.unwrap_err();
        assert_eq!(
            (error.owner(), error.kind()),
            (Owner::Configuration, "world_unreadable")
        );
        assert!(
            error.to_string().contains(&*world.to_string_lossy()),
            "{error}"
        );
    }
    assert!(stub.script.lock().unwrap().populated.is_empty());
}
