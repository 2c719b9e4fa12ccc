//! The wire format of Protocol Buffers, as far as OTLP needs it: fields are appended to bytes, and the
//! fields of a message are read one by one.

use bytes::BufMut as _;

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LEN: u32 = 2;
const FIXED32: u32 = 5;

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_tag(out: &mut Vec<u8>, field: u32, kind: u32) {
    put_varint(out, u64::from(field << 3 | kind));
}

/// Appends an integer, a bool or an enum.
pub(crate) fn put_int(out: &mut Vec<u8>, field: u32, value: u64) {
    put_tag(out, field, VARINT);
    put_varint(out, value);
}

/// Appends eight bytes: a time.
pub(crate) fn put_fixed64(out: &mut Vec<u8>, field: u32, value: u64) {
    put_tag(out, field, FIXED64);
    out.put_u64_le(value);
}

/// Appends four bytes: flags.
pub(crate) fn put_fixed32(out: &mut Vec<u8>, field: u32, value: u32) {
    put_tag(out, field, FIXED32);
    out.put_u32_le(value);
}

/// Appends a number with a fraction.
pub(crate) fn put_double(out: &mut Vec<u8>, field: u32, value: f64) {
    put_fixed64(out, field, value.to_bits());
}

/// Appends bytes, a text or an encoded message.
pub(crate) fn put_bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    put_tag(out, field, LEN);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Appends the message that `write` appends.
pub(crate) fn put_message(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    put_tag(out, field, LEN);
    let begin = out.len();
    write(out);
    let len = out.len() - begin;
    let mut prefix = Vec::with_capacity(5);
    put_varint(&mut prefix, len as u64);
    out.splice(begin..begin, prefix);
}

/// The value of a field.
#[derive(Debug, PartialEq)]
pub(crate) enum FieldValue<'a> {
    Int(u64),
    Bytes(&'a [u8]),
    /// A fixed number, which no message that is read here has.
    Other,
}

/// The first field of `bytes`, which are advanced; `None` at their end and for bytes that are no message.
pub(crate) fn next_field<'a>(bytes: &mut &'a [u8]) -> Option<(u32, FieldValue<'a>)> {
    let tag = take_varint(bytes)?;
    let field = u32::try_from(tag >> 3).ok()?;
    let value = match (tag & 7) as u32 {
        VARINT => FieldValue::Int(take_varint(bytes)?),
        LEN => {
            let len = usize::try_from(take_varint(bytes)?).ok()?;
            FieldValue::Bytes(bytes.split_off(..len)?)
        }
        FIXED64 => bytes.split_off(..8).map(|_| FieldValue::Other)?,
        FIXED32 => bytes.split_off(..4).map(|_| FieldValue::Other)?,
        _ => return None,
    };
    Some((field, value))
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_they_were_written() {
        let mut out = Vec::new();
        put_int(&mut out, 1, u64::MAX);
        put_fixed64(&mut out, 2, 7);
        put_fixed32(&mut out, 3, 7);
        put_message(&mut out, 4, |out| put_bytes(out, 1, &[b'x'; 300]));
        put_int(&mut out, 500, 0);
        let mut rest = out.as_slice();
        assert_eq!(next_field(&mut rest), Some((1, FieldValue::Int(u64::MAX))));
        assert_eq!(next_field(&mut rest), Some((2, FieldValue::Other)));
        assert_eq!(next_field(&mut rest), Some((3, FieldValue::Other)));
        let Some((4, FieldValue::Bytes(mut message))) = next_field(&mut rest) else {
            panic!("a message")
        };
        assert_eq!(
            next_field(&mut message),
            Some((1, FieldValue::Bytes(&[b'x'; 300])))
        );
        assert_eq!(next_field(&mut rest), Some((500, FieldValue::Int(0))));
        assert_eq!(next_field(&mut rest), None);
    }

    #[test]
    fn bytes_that_are_no_message_end_the_reading() {
        for bad in [
            &[0x0a_u8, 0x05, 1][..],
            &[0xff; 20],
            &[0x08],
            &[0x09, 1],
            &[0x0b],
        ] {
            assert_eq!(next_field(&mut &*bad), None, "{bad:?}");
        }
    }
}
