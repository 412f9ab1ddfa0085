//! Unpacks hostile archives: nothing may ever appear outside of the target, and after a failure nothing in it.
#![no_main]

use std::io::Write as _;

use libfuzzer_sys::fuzz_target;
use snapshot::Limits;
use snapshot::archive::unpack_tar_gz;

fuzz_target!(|tar: &[u8]| {
    // The checksum of a compressed stream would keep the fuzzer out; so it mutates the tar inside.
    let mut gzip = Vec::from(b"\x1f\x8b\x08\0\0\0\0\0\0\xff".as_slice());
    for (index, block) in tar.chunks(0xffff).enumerate() {
        let last = u8::from((index + 1) * 0xffff >= tar.len());
        let length = u16::try_from(block.len()).unwrap();
        gzip.push(last);
        gzip.write_all(&length.to_le_bytes()).unwrap();
        gzip.write_all(&(!length).to_le_bytes()).unwrap();
        gzip.write_all(block).unwrap();
    }
    if tar.is_empty() {
        gzip.write_all(&[1, 0, 0, 0xff, 0xff]).unwrap();
    }
    gzip.write_all(&crc32(tar).to_le_bytes()).unwrap();
    gzip.write_all(&u32::try_from(tar.len()).unwrap().to_le_bytes()).unwrap();

    let home = tempfile::tempdir().unwrap();
    let target = home.path().join("target");
    std::fs::create_dir(&target).unwrap();
    let limits = Limits {
        total_bytes: 1 << 20,
        file_bytes: 1 << 20,
        entries: 100,
        ..Limits::default()
    };
    let unpacked = unpack_tar_gz(gzip.as_slice(), &target, &limits);
    let names: Vec<_> = std::fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["target"], "something is beside the target");
    if unpacked.is_err() {
        assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
    }
});

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1))
        })
    })
}
