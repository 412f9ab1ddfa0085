//! Archives of a world: pack, unpack safely, convert, compare
