//! Compact JSON, as `serde_json` writes it, for bodies of requests.
//!
//! A body is mostly text that needs no escapes, and most of what a call costs on this side of the wire
//! was looking at that text byte by byte. Here it is looked at in blocks and copied.

use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::{Error, Value};

/// How `serde_json` names structures that stand for JSON as it is.
const RAW: &str = "$serde_json::private::";

/// How many bytes of a text are looked at together.
const BLOCK: usize = 32;

/// Appends `value` to `out`.
pub(crate) fn write(out: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Error> {
    value.serialize(&mut Writer { out })
}

struct Writer<'w> {
    out: &'w mut Vec<u8>,
}

impl Writer<'_> {
    fn text(&mut self, text: &str) {
        self.out.push(b'"');
        let mut rest = text.as_bytes();
        loop {
            let (clean, odd) = rest.split_at(clean_beginning(rest));
            self.out.extend_from_slice(clean);
            let Some((byte, after)) = odd.split_first() else {
                break;
            };
            self.escape(*byte);
            rest = after;
        }
        self.out.push(b'"');
    }

    fn escape(&mut self, byte: u8) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let short = match byte {
            b'"' | b'\\' => byte,
            0x08 => b'b',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            _ => {
                self.out.extend_from_slice(b"\\u00");
                let digit = |number: u8| DIGITS[usize::from(number & 0xf)];
                self.out.extend([digit(byte >> 4), digit(byte)]);
                return;
            }
        };
        self.out.extend([b'\\', short]);
    }

    /// Numbers and other small things.
    fn small(&mut self, value: &impl Serialize) -> Result<(), Error> {
        serde_json::to_writer(&mut *self.out, value)
    }

    /// `{"variant":`
    fn begin_variant(&mut self, variant: &str) {
        self.out.push(b'{');
        self.text(variant);
        self.out.push(b':');
    }
}

const fn is_odd(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// How many bytes at the beginning of `bytes` need no escape.
fn clean_beginning(bytes: &[u8]) -> usize {
    // Without a branch within a block, so that the compiler can look at all its bytes at once.
    let is_clean = |block: &&[u8]| !block.iter().fold(false, |odd, byte| odd | is_odd(*byte));
    let blocks = bytes.chunks_exact(BLOCK).take_while(is_clean).count();
    let rest = &bytes[blocks * BLOCK..];
    let clean = rest.iter().position(|byte| is_odd(*byte));
    blocks * BLOCK + clean.unwrap_or(rest.len())
}

/// A list or an object that is being written.
struct Inside<'a, 'w> {
    writer: &'a mut Writer<'w>,
    is_empty: bool,
    /// What closes it.
    end: &'static [u8],
    /// It is JSON as it is, and not an object.
    is_raw: bool,
}

impl<'a, 'w> Inside<'a, 'w> {
    fn new(writer: &'a mut Writer<'w>, begin: u8, end: &'static [u8]) -> Self {
        writer.out.push(begin);
        Self {
            writer,
            is_empty: true,
            end,
            is_raw: false,
        }
    }

    fn next(&mut self) {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.writer.out.push(b',');
        }
    }

    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.next();
        value.serialize(&mut *self.writer)
    }

    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.next();
        let start = self.writer.out.len();
        key.serialize(&mut *self.writer)?;
        if self.writer.out.get(start) != Some(&b'"') {
            return Err(Error::custom("a key must be a text"));
        }
        self.writer.out.push(b':');
        Ok(())
    }

    fn field<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), Error> {
        if self.is_raw {
            let Value::String(json) = serde_json::to_value(value)? else {
                return Err(Error::custom(
                    "JSON that is to be written as it is must be a text",
                ));
            };
            self.writer.out.extend_from_slice(json.as_bytes());
            return Ok(());
        }
        self.next();
        self.writer.text(key);
        self.writer.out.push(b':');
        value.serialize(&mut *self.writer)
    }

    fn close(self) {
        self.writer.out.extend_from_slice(self.end);
    }
}

macro_rules! small {
    ($($method:ident($kind:ty))*) => {
        $(fn $method(self, value: $kind) -> Result<(), Error> {
            self.small(&value)
        })*
    };
}

impl<'a, 'w> Serializer for &'a mut Writer<'w> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Inside<'a, 'w>;
    type SerializeTuple = Inside<'a, 'w>;
    type SerializeTupleStruct = Inside<'a, 'w>;
    type SerializeTupleVariant = Inside<'a, 'w>;
    type SerializeMap = Inside<'a, 'w>;
    type SerializeStruct = Inside<'a, 'w>;
    type SerializeStructVariant = Inside<'a, 'w>;

    small! {
        serialize_bool(bool) serialize_char(char) serialize_f32(f32) serialize_f64(f64)
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64)
    }

    fn serialize_str(self, text: &str) -> Result<(), Error> {
        self.text(text);
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Error> {
        self.small(&bytes)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.begin_variant(variant);
        value.serialize(&mut *self)?;
        self.out.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'a, 'w>, Error> {
        Ok(Inside::new(self, b'[', b"]"))
    }

    fn serialize_tuple(self, length: usize) -> Result<Inside<'a, 'w>, Error> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        length: usize,
    ) -> Result<Inside<'a, 'w>, Error> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'a, 'w>, Error> {
        self.begin_variant(variant);
        Ok(Inside::new(self, b'[', b"]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'a, 'w>, Error> {
        Ok(Inside::new(self, b'{', b"}"))
    }

    fn serialize_struct(self, name: &'static str, length: usize) -> Result<Inside<'a, 'w>, Error> {
        if name.starts_with(RAW) {
            return Ok(Inside {
                writer: self,
                is_empty: true,
                end: b"",
                is_raw: true,
            });
        }
        self.serialize_map(Some(length))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'a, 'w>, Error> {
        self.begin_variant(variant);
        Ok(Inside::new(self, b'{', b"}}"))
    }
}

impl SerializeMap for Inside<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut *self.writer)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

macro_rules! lists {
    ($($kind:ident::$method:ident)*) => {
        $(impl $kind for Inside<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.element(value)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        })*
    };
}

lists! {
    SerializeSeq::serialize_element SerializeTuple::serialize_element
    SerializeTupleStruct::serialize_field SerializeTupleVariant::serialize_field
}

macro_rules! structures {
    ($($kind:ident)*) => {
        $(impl $kind for Inside<'_, '_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.field(key, value)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        })*
    };
}

structures! { SerializeStruct SerializeStructVariant }

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;
    use serde::Serialize;
    use serde_json::json;
    use serde_json::value::RawValue;

    fn written(value: &impl Serialize) -> Result<String, Error> {
        let mut out = Vec::new();
        write(&mut out, value)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[derive(Serialize)]
    enum Shape {
        Unit,
        New(u8),
        Two(i64, f64),
        Named { a: Option<char>, b: () },
    }

    #[derive(Serialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Tagged<'a> {
        Text {
            text: &'a str,
        },
        #[serde(untagged)]
        Raw(Box<RawValue>),
    }

    #[derive(Serialize)]
    struct All<'a> {
        shapes: Vec<Shape>,
        tagged: Vec<Tagged<'a>>,
        pair: (bool, f32),
        #[serde(skip_serializing_if = "Option::is_none")]
        nothing: Option<u8>,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }

    #[test]
    fn every_kind_of_thing_is_written_as_serde_json_does() {
        let all = All {
            shapes: vec![
                Shape::Unit,
                Shape::New(7),
                Shape::Two(-1, 1.5e300),
                Shape::Named {
                    a: Some('"'),
                    b: (),
                },
                Shape::Named { a: None, b: () },
            ],
            tagged: vec![
                Tagged::Text {
                    text: "a\u{1f}\u{7f}\"\\/\n\r\t\u{8}\u{c}ü€𝄞",
                },
                Tagged::Raw(RawValue::from_string("{ \"n\": 1.0e2 }".to_owned()).unwrap()),
            ],
            pair: (true, 0.1),
            nothing: None,
            rest: BTreeMap::from([("x".to_owned(), json!([null, u64::MAX, -0.5, {}, []]))]),
        };
        let expected = serde_json::to_string(&all).unwrap();
        assert!(expected.contains("{ \"n\": 1.0e2 }") && expected.contains("\\u001f"));
        assert_eq!(written(&all).unwrap(), expected);
        // Escapes at each place of a block and behind it.
        for place in 0..100 {
            let mut text = "x".repeat(100);
            text.replace_range(place..=place, "\n");
            assert_eq!(
                written(&text).unwrap(),
                serde_json::to_string(&text).unwrap()
            );
        }
        assert!(written(&BTreeMap::from([(vec![1], 2)])).is_err());
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            ".{0,80}".prop_map(Value::from),
            "[a-z\\\\\"\\x00-\\x20]{0,80}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
                proptest::collection::vec((".{0,40}", inner), 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_are_written_as_serde_json_does(value in any_value()) {
            prop_assert_eq!(written(&value).unwrap(), value.to_string());
        }
    }
}
