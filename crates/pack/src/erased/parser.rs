//! The side of the parser: the one visitor and the one seed that a deserializer is compiled for, and
//! adapters that keep the errors it makes.

use std::fmt;

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::port::{Choice, Content, Entries, Hint, Items, Scalar, Seed, Sink, Source};
use super::refusal::Refusal;

/// A result, or the error that an adapter kept.
fn settle<T, E: de::Error>(done: Result<T, Refusal>, kept: Option<E>) -> Result<T, E> {
    done.map_err(|refusal| match (refusal, kept) {
        (Refusal::Kept, Some(error)) => error,
        // A visitor may answer the parser's error with one of its own.
        (refusal, _) => refusal.into_error(),
    })
}

/// Keeps the error of a result.
fn keep<T, E>(done: Result<T, E>, kept: &mut Option<E>) -> Result<T, Refusal> {
    done.map_err(|error| {
        *kept = Some(error);
        Refusal::Kept
    })
}

/// The one visitor that a deserializer is compiled for.
struct SinkRef<'a, 'de>(&'a mut dyn Sink<'de>);

impl SinkRef<'_, '_> {
    fn done<E: de::Error>(done: Result<(), Refusal>) -> Result<(), E> {
        settle(done, None)
    }
}

impl<'de> Visitor<'de> for SinkRef<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        Self::done(self.0.scalar(Scalar::Bool(value)))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        Self::done(self.0.scalar(Scalar::I64(value)))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        Self::done(self.0.scalar(Scalar::U64(value)))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        Self::done(self.0.scalar(Scalar::F64(value)))
    }

    fn visit_char<E: de::Error>(self, value: char) -> Result<(), E> {
        Self::done(self.0.scalar(Scalar::Char(value)))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<(), E> {
        Self::done(self.0.scalar(Scalar::Str(value)))
    }

    fn visit_borrowed_str<E: de::Error>(self, value: &'de str) -> Result<(), E> {
        Self::done(self.0.scalar(Scalar::Borrowed(value)))
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<(), E> {
        Self::done(self.0.scalar(Scalar::String(value)))
    }

    fn visit_bytes<E: de::Error>(self, value: &[u8]) -> Result<(), E> {
        Self::done(self.0.scalar(Scalar::Bytes(value)))
    }

    fn visit_borrowed_bytes<E: de::Error>(self, value: &'de [u8]) -> Result<(), E> {
        Self::done(self.0.scalar(Scalar::BorrowedBytes(value)))
    }

    fn visit_byte_buf<E: de::Error>(self, value: Vec<u8>) -> Result<(), E> {
        Self::done(self.0.scalar(Scalar::ByteBuf(value)))
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Self::done(self.0.scalar(Scalar::Unit))
    }

    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        Self::done(self.0.scalar(Scalar::None))
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        let mut slot = Slot::new(value);
        let done = self.0.some(&mut slot);
        slot.settle(done)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        let mut slot = Slot::new(value);
        let done = self.0.newtype(&mut slot);
        slot.settle(done)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<(), A::Error> {
        let mut kept = Kept {
            access: items,
            error: None,
        };
        let done = self.0.seq(&mut kept);
        settle(done, kept.error)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        let mut kept = Kept {
            access: entries,
            error: None,
        };
        let done = self.0.map(&mut kept);
        settle(done, kept.error)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, choice: A) -> Result<(), A::Error> {
        let mut kept = KeptChoice::<A> {
            access: Some(choice),
            variant: None,
            error: None,
        };
        let done = self.0.variant(&mut kept);
        settle(done, kept.error)
    }
}

/// The one seed that an access object is compiled for.
struct SeedRef<'a, 'de>(&'a mut dyn Seed<'de>);

impl<'de> DeserializeSeed<'de> for SeedRef<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        let mut slot = Slot::new(value);
        let done = self.0.read(&mut slot);
        slot.settle(done)
    }
}

/// An access object with the error that it met.
struct Kept<A, E> {
    access: A,
    error: Option<E>,
}

impl<'de, A: SeqAccess<'de>> Items<'de> for Kept<A, A::Error> {
    fn next(&mut self, seed: &mut dyn Seed<'de>) -> Result<bool, Refusal> {
        let next = self.access.next_element_seed(SeedRef(seed));
        keep(next, &mut self.error).map(|next| next.is_some())
    }

    fn size_hint(&self) -> Option<usize> {
        self.access.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> Entries<'de> for Kept<A, A::Error> {
    fn key(&mut self, seed: &mut dyn Seed<'de>) -> Result<bool, Refusal> {
        let key = self.access.next_key_seed(SeedRef(seed));
        keep(key, &mut self.error).map(|key| key.is_some())
    }

    fn value(&mut self, seed: &mut dyn Seed<'de>) -> Result<(), Refusal> {
        let value = self.access.next_value_seed(SeedRef(seed));
        keep(value, &mut self.error)
    }

    fn size_hint(&self) -> Option<usize> {
        self.access.size_hint()
    }
}

/// An enum's access object, then its variant's.
struct KeptChoice<'de, A: EnumAccess<'de>> {
    access: Option<A>,
    variant: Option<A::Variant>,
    error: Option<A::Error>,
}

impl<'de, A: EnumAccess<'de>> KeptChoice<'de, A> {
    fn take(&mut self) -> Result<A::Variant, Refusal> {
        let untold = || Refusal::Custom("a variant is read once, after its name".to_owned());
        self.variant.take().ok_or_else(untold)
    }
}

impl<'de, A: EnumAccess<'de>> Choice<'de> for KeptChoice<'de, A> {
    fn which(&mut self, seed: &mut dyn Seed<'de>) -> Result<(), Refusal> {
        let again = || Refusal::Custom("the name of a variant is read once".to_owned());
        let access = self.access.take().ok_or_else(again)?;
        let ((), variant) = keep(access.variant_seed(SeedRef(seed)), &mut self.error)?;
        self.variant = Some(variant);
        Ok(())
    }

    fn unit(&mut self) -> Result<(), Refusal> {
        let variant = self.take()?;
        keep(variant.unit_variant(), &mut self.error)
    }

    fn newtype(&mut self, seed: &mut dyn Seed<'de>) -> Result<(), Refusal> {
        let variant = self.take()?;
        keep(variant.newtype_variant_seed(SeedRef(seed)), &mut self.error)
    }

    fn content(&mut self, of: Content, sink: &mut dyn Sink<'de>) -> Result<(), Refusal> {
        let variant = self.take()?;
        let done = match of {
            Content::Tuple(length) => variant.tuple_variant(length, SinkRef(sink)),
            Content::Struct(fields) => variant.struct_variant(fields, SinkRef(sink)),
        };
        keep(done, &mut self.error)
    }
}

/// A deserializer, and the error that it met.
pub(crate) struct Slot<'de, D: Deserializer<'de>> {
    deserializer: Option<D>,
    error: Option<D::Error>,
}

impl<'de, D: Deserializer<'de>> Slot<'de, D> {
    pub(crate) fn new(deserializer: D) -> Self {
        Self {
            deserializer: Some(deserializer),
            error: None,
        }
    }

    /// The result in the deserializer's own type of error.
    pub(crate) fn settle<T>(self, done: Result<T, Refusal>) -> Result<T, D::Error> {
        settle(done, self.error)
    }
}

impl<'de, D: Deserializer<'de>> Source<'de> for Slot<'de, D> {
    fn give(&mut self, hint: Hint, sink: &mut dyn Sink<'de>) -> Result<(), Refusal> {
        let again = || Refusal::Custom("a value is read once".to_owned());
        let from = self.deserializer.take().ok_or_else(again)?;
        let sink = SinkRef(sink);
        let done = match hint {
            Hint::Any => from.deserialize_any(sink),
            Hint::Bool => from.deserialize_bool(sink),
            Hint::I8 => from.deserialize_i8(sink),
            Hint::I16 => from.deserialize_i16(sink),
            Hint::I32 => from.deserialize_i32(sink),
            Hint::I64 => from.deserialize_i64(sink),
            Hint::U8 => from.deserialize_u8(sink),
            Hint::U16 => from.deserialize_u16(sink),
            Hint::U32 => from.deserialize_u32(sink),
            Hint::U64 => from.deserialize_u64(sink),
            Hint::F32 => from.deserialize_f32(sink),
            Hint::F64 => from.deserialize_f64(sink),
            Hint::Char => from.deserialize_char(sink),
            Hint::Str => from.deserialize_str(sink),
            Hint::String => from.deserialize_string(sink),
            Hint::Bytes => from.deserialize_bytes(sink),
            Hint::ByteBuf => from.deserialize_byte_buf(sink),
            Hint::Option => from.deserialize_option(sink),
            Hint::Unit => from.deserialize_unit(sink),
            Hint::UnitStruct(name) => from.deserialize_unit_struct(name, sink),
            Hint::Newtype(name) => from.deserialize_newtype_struct(name, sink),
            Hint::Seq => from.deserialize_seq(sink),
            Hint::Tuple(length) => from.deserialize_tuple(length, sink),
            Hint::TupleStruct(name, length) => from.deserialize_tuple_struct(name, length, sink),
            Hint::Map => from.deserialize_map(sink),
            Hint::Struct(name, fields) => from.deserialize_struct(name, fields, sink),
            Hint::Enum(name, variants) => from.deserialize_enum(name, variants, sink),
            Hint::Identifier => from.deserialize_identifier(sink),
            Hint::Ignored => from.deserialize_ignored_any(sink),
        };
        keep(done, &mut self.error)
    }
}
