//! Opens hostile zips and tars as worlds, and reads what they hold: errors, never a panic or more than the limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use snapshot::{Limits, World};

fuzz_target!(|bytes: &[u8]| {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("world");
    std::fs::write(&path, bytes).unwrap();
    let limits = Limits {
        total_bytes: 1 << 20,
        file_bytes: 1 << 20,
        entries: 100,
        ..Limits::default()
    };
    if let Ok(world) = World::open_with(&path, &limits) {
        for entry in world.entries() {
            let _ = world.read_entry(entry, 1 << 20);
        }
        let _ = world.write_zip(std::io::Cursor::new(Vec::new()));
    }
});
