//! The worked examples of `docs/grading.md` for checks that were made for one product: each passes
//! on a world that has what it asks for, and does not pass on one that has something else.

use std::collections::BTreeMap;
use std::path::Path;

use formats::grades::VerifierStatus;
use serde_json::Value;
use testkit::openai::Turn;

use crate::case::{Case, stub};
use testkit::documents::database;

/// All ids of checks for one product.
const CHECKS: [&str; 34] = [
    "quickbooks_report_line_item",
    "quickbooks_journal_entry",
    "quickbooks_variance",
    "quickbooks_field_check",
    "taxjar_field_check",
    "taxjar_calculation",
    "xero_field_check",
    "xero_calculation",
    "openemr_field_check",
    "openemr_state_check",
    "openemr_clinical_verification",
    "tableau_field_check",
    "looker_field_check",
    "looker_content_check",
    "eightfold_field_check",
    "bamboohr_field_check",
    "adp_field_check",
    "adp_calculation",
    "adp_journal_entry",
    "sap_onboarding_field_check",
    "sap_recruiting_field_check",
    "workday_field_check",
    "workday_help_field_check",
    "greenhouse_field_check",
    "ace_criterion_verifier",
    "kicad_field_check",
    "kicad_lvs_check",
    "kicad_routing_completeness",
    "kicad_drc_jlcpcb",
    "kicad_layout_quality",
    "kicad_spice_check",
    "freecad_field_check",
    "jenkins_field_check",
    "playground_snapshot_verifier",
];

fn examples() -> Vec<Value> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grading.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("### Checks of products").unwrap();
    let (_, block) = section.split_once("```json\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    serde_json::from_str(block).unwrap()
}

type Files = Vec<(String, Vec<u8>)>;

/// Databases of products: tables, then rows of a world before, a right one and a wrong one.
fn databases() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    vec![
        (
            "quickbooks",
            "create table customers (name, balance); create table postings (account, amount);
             create table journal_lines (entry, debit, credit);",
            "insert into customers values ('Acme', 1250.5); insert into postings values ('Rent', 1200), ('Rent', 1200), ('Fees', 9);
             insert into journal_lines values ('JE-7', 300, 0), ('JE-7', 0, 300), ('JE-8', 1, 1);",
            "insert into customers values ('Acme', 1250.52); insert into postings values ('Rent', 1200);
             insert into journal_lines values ('JE-7', 300, 0), ('JE-7', 0, 299);",
        ),
        (
            "taxjar",
            "create table rates (zip, combined_rate); create table transactions (state, day, tax);",
            "insert into rates values ('94105', 0.08625);
             insert into transactions values ('CA', '2025-01-05', 80), ('CA', '2025-03-31', 6.3), ('CA', '2025-04-01', 5), ('NY', '2025-02-01', 5);",
            "insert into rates values ('94105', 0.0875); insert into transactions values ('CA', '2025-01-05', 80);",
        ),
        (
            "xero",
            "create table invoices (number, status, due, due_day);",
            "insert into invoices values ('INV-9', 'PAID', 0, '2025-01-01'), ('INV-1', 'OPEN', 70, '2025-01-20'), ('INV-2', 'OPEN', 5, '2025-02-01');",
            "insert into invoices values ('INV-9', 'OPEN', 10, '2025-01-01');",
        ),
        (
            "openemr",
            "create table orders (encounter, kind); create table notes (encounter, signed, text);",
            "insert into orders values (12, 'lab'), (12, 'lab'), (12, 'image'), (13, 'lab'); insert into notes values (12, 1, 'pneumonia; or flu, or covid');",
            "insert into orders values (12, 'lab'); insert into notes values (12, 0, 'draft');",
        ),
        (
            "tableau",
            "create table users (name, site_role);",
            "insert into users values ('ada', 'Viewer');",
            "insert into users values ('ada', 'Creator');",
        ),
        (
            "eightfold",
            "create table applications (profile, stage);",
            "insert into applications values ('p1', 'interview');",
            "insert into applications values ('p2', 'Interview');",
        ),
        (
            "bamboohr",
            "create table employees (id, job_title);",
            "insert into employees values (5, 'Lead');",
            "insert into employees values (5, 'Clerk');",
        ),
        (
            "adp",
            "create table payroll_runs (id, status); create table payslips (run, gross, net); create table journal (entry, debit, credit);",
            "insert into payroll_runs values ('R1', 'Approved'); insert into payslips values ('R1', 3000, 2000), ('R1', 2000, 1500);
             insert into journal values ('J1', 10.1, 0), ('J1', 0, 10.1);",
            "insert into payroll_runs values ('R1', 'draft'); insert into payslips values ('R1', 3000, 2000); insert into journal values ('J1', 10.1, 0);",
        ),
        (
            "sap_onboarding",
            "create table steps (process, done);",
            "insert into steps values ('P1', 1), ('P1', 1), ('P1', 1), ('P1', 0);",
            "insert into steps values ('P1', 1);",
        ),
        (
            "sap_recruiting",
            "create table requisitions (id, hiring_manager);",
            "insert into requisitions values ('REQ-1', 'Grace');",
            "insert into requisitions values ('REQ-1', 'Alan');",
        ),
        (
            "workday",
            "create table workers (id, cost_center);",
            "insert into workers values ('W1', 'CC-20');",
            "insert into workers values ('W1', 'CC-2');",
        ),
        (
            "workday_help",
            "create table cases (id, status);",
            "insert into cases values ('C1', 'Resolved');",
            "insert into cases values ('C1', 'Open');",
        ),
        (
            "greenhouse",
            "create table scorecards (candidate, recommendation);",
            "insert into scorecards values (4, 'YES');",
            "insert into scorecards values (4, 'no');",
        ),
        (
            "crm",
            "create table deals (id integer primary key, stage, updated_at);",
            "insert into deals values (1, 'won', 7);",
            "insert into deals values (1, 'lost', 7);",
        ),
    ]
}

/// Other files: a right one and a wrong one.
const FILES: [(&str, &str, &str); 9] = [
    (
        "looker/orders.csv",
        "month,orders\n1,42\n",
        "month,orders\n1,41\n",
    ),
    (
        "looker/dashboards/7.json",
        r#"{"elements": [{"title": "Orders by month"}]}"#,
        r#"{"elements": []}"#,
    ),
    (
        "kicad/netlist.xml",
        "<export><components><comp ref='R1'><value>1k</value></comp><comp ref='R2'><value>10K</value></comp></components></export>",
        "<export><components><comp ref='R1'><value>1k</value></comp><comp ref='R2'><value>12k</value></comp></components></export>",
    ),
    (
        "kicad/lvs.json",
        r#"{"mismatches": []}"#,
        r#"{"mismatches": ["R1"]}"#,
    ),
    (
        "kicad/drc.json",
        r#"{"violations": [], "unconnected_items": []}"#,
        r#"{"violations": [{}], "unconnected_items": [{}]}"#,
    ),
    (
        "kicad/board.kicad_pcb",
        "(segment 1)\n(segment 2)\n",
        "(segment 1)\n(segment 2)\n(segment 3)\n",
    ),
    (
        "kicad/op.json",
        r#"{"nodes": {"vout": 3.34}}"#,
        r#"{"nodes": {"vout": 3.36}}"#,
    ),
    (
        "freecad/part.json",
        r#"{"objects": {"Box": {"Length": 20.0}}}"#,
        r#"{"objects": {"Box": {"Length": 20.1}}}"#,
    ),
    (
        "jobs/build/config.xml",
        "<project><triggers><cron><spec>0 6 * * *</spec></cron></triggers></project>",
        "<project><triggers/></project>",
    ),
];

/// The worlds: before, right, wrong.
fn worlds() -> [Files; 3] {
    let mut worlds = [Files::new(), Files::new(), Files::new()];
    for (product, tables, right, wrong) in databases() {
        // What nobody changed is no changed job title either.
        let before = if product == "bamboohr" { wrong } else { "" };
        for (files, rows) in worlds.iter_mut().zip([before, right, wrong]) {
            let path = format!(".apps_data/{product}/data.db");
            files.push((path, database(&format!("{tables} {rows}"))));
        }
    }
    for (path, right, wrong) in FILES {
        worlds[1].push((path.to_owned(), right.as_bytes().to_vec()));
        worlds[2].push((path.to_owned(), wrong.as_bytes().to_vec()));
    }
    worlds
}

fn borrowed(files: &Files) -> Vec<(&str, &[u8])> {
    files
        .iter()
        .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
        .collect()
}

#[test]
fn every_check_has_an_example() {
    let mut named: Vec<String> = examples()
        .iter()
        .map(|example| example["check"].as_str().unwrap().to_owned())
        .collect();
    let mut wanted = CHECKS.map(str::to_owned).to_vec();
    named.sort();
    wanted.sort();
    assert_eq!(named, wanted);
}

#[tokio::test]
async fn each_example_passes_on_the_right_world_and_on_no_other() {
    let [before, right, wrong] = worlds();
    for (after, score, word) in [(&right, 1.0, 1), (&wrong, 0.0, 0)] {
        let mut case = Case::new("It costs 450 dollars.");
        case.worlds(&borrowed(&before), &borrowed(after));
        // The correct end state has another time of change, which does not count.
        let golden = database(
            "create table deals (id integer primary key, stage, updated_at);
             insert into deals values (1, 'won', 99);",
        );
        case.golden(&[(".apps_data/crm/data.db", &golden)]);
        let mut checks = BTreeMap::new();
        for example in examples() {
            let eval = example["eval"].as_str().unwrap();
            let verifier = case.verifier(eval, example["values"].clone());
            let id = verifier["verifier_id"].as_str().unwrap().to_owned();
            checks.insert(id, example["check"].as_str().unwrap().to_owned());
        }
        // The two examples that ask a judge.
        let reply = Turn::says(format!(r#"{{"result": {word}, "reason": "r"}}"#));
        let judge = stub([reply.clone(), reply]).await;
        let grades = case.grade_with(&judge).await;
        assert_eq!(grades.verifier_results.len(), CHECKS.len());
        for result in &grades.verifier_results {
            let check = &checks[&result.verifier_id];
            assert_eq!(result.status, VerifierStatus::Ok, "{check}: {result:?}");
            assert_eq!(result.score, score, "{check}: {result:?}");
        }
    }
}
