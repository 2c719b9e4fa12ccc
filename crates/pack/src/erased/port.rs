//! What passes between the parser and a type: values, questions, and the objects that give and take
//! them.

use std::fmt;

use super::refusal::Refusal;

/// Which kind of value a type asks its deserializer for.
#[derive(Clone, Copy)]
pub(crate) enum Hint {
    Any,
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    Char,
    Str,
    String,
    Bytes,
    ByteBuf,
    Option,
    Unit,
    UnitStruct(&'static str),
    Newtype(&'static str),
    Seq,
    Tuple(usize),
    TupleStruct(&'static str, usize),
    Map,
    Struct(&'static str, &'static [&'static str]),
    Enum(&'static str, &'static [&'static str]),
    Identifier,
    Ignored,
}

/// A deserializer, asked once.
pub(crate) trait Source<'de> {
    fn give(&mut self, hint: Hint, sink: &mut dyn Sink<'de>) -> Result<(), Refusal>;
}

/// A value without parts.
pub(crate) enum Scalar<'v, 'de> {
    Bool(bool),
    I64(i64),
    U64(u64),
    F64(f64),
    Char(char),
    Str(&'v str),
    Borrowed(&'de str),
    String(String),
    Bytes(&'v [u8]),
    BorrowedBytes(&'de [u8]),
    ByteBuf(Vec<u8>),
    Unit,
    None,
}

/// A visitor.
pub(crate) trait Sink<'de> {
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
    fn scalar(&mut self, value: Scalar<'_, 'de>) -> Result<(), Refusal>;
    fn some(&mut self, value: &mut dyn Source<'de>) -> Result<(), Refusal>;
    fn newtype(&mut self, value: &mut dyn Source<'de>) -> Result<(), Refusal>;
    fn seq(&mut self, items: &mut dyn Items<'de>) -> Result<(), Refusal>;
    fn map(&mut self, entries: &mut dyn Entries<'de>) -> Result<(), Refusal>;
    fn variant(&mut self, choice: &mut dyn Choice<'de>) -> Result<(), Refusal>;
}

/// A seed: reads one value.
pub(crate) trait Seed<'de> {
    fn read(&mut self, value: &mut dyn Source<'de>) -> Result<(), Refusal>;
}

/// The elements of a list. False at its end.
pub(crate) trait Items<'de> {
    fn next(&mut self, seed: &mut dyn Seed<'de>) -> Result<bool, Refusal>;
    fn size_hint(&self) -> Option<usize>;
}

/// The entries of a map. False at its end.
pub(crate) trait Entries<'de> {
    fn key(&mut self, seed: &mut dyn Seed<'de>) -> Result<bool, Refusal>;
    fn value(&mut self, seed: &mut dyn Seed<'de>) -> Result<(), Refusal>;
    fn size_hint(&self) -> Option<usize>;
}

/// What a variant holds.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    Tuple(usize),
    Struct(&'static [&'static str]),
}

/// A variant of an enum: first which, then what it holds.
pub(crate) trait Choice<'de> {
    fn which(&mut self, seed: &mut dyn Seed<'de>) -> Result<(), Refusal>;
    fn unit(&mut self) -> Result<(), Refusal>;
    fn newtype(&mut self, seed: &mut dyn Seed<'de>) -> Result<(), Refusal>;
    fn content(&mut self, of: Content, sink: &mut dyn Sink<'de>) -> Result<(), Refusal>;
}
