//! The side of a type: [`Handle`], the one deserializer that types are compiled for, and what holds
//! their visitors and seeds.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::port::{Choice, Content, Entries, Hint, Items, Scalar, Seed, Sink, Source};
use super::refusal::Refusal;

/// What an access object that gives nothing is answered.
const NOTHING: Refusal = Refusal::Custom(String::new());

/// The one deserializer that types are compiled for.
pub(crate) struct Handle<'a, 'de>(&'a mut dyn Source<'de>);

impl<'a, 'de> Handle<'a, 'de> {
    pub(crate) fn new(source: &'a mut dyn Source<'de>) -> Self {
        Self(source)
    }

    fn ask<V: Visitor<'de>>(self, hint: Hint, visitor: V) -> Result<V::Value, Refusal> {
        let mut holder = Holder::new(visitor);
        self.0.give(hint, &mut holder)?;
        holder.take()
    }
}

macro_rules! asks {
    ($($method:ident $hint:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
            self.ask(Hint::$hint, visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for Handle<'_, 'de> {
    type Error = Refusal;

    asks! {
        deserialize_any Any
        deserialize_bool Bool
        deserialize_i8 I8
        deserialize_i16 I16
        deserialize_i32 I32
        deserialize_i64 I64
        deserialize_u8 U8
        deserialize_u16 U16
        deserialize_u32 U32
        deserialize_u64 U64
        deserialize_f32 F32
        deserialize_f64 F64
        deserialize_char Char
        deserialize_str Str
        deserialize_string String
        deserialize_bytes Bytes
        deserialize_byte_buf ByteBuf
        deserialize_option Option
        deserialize_unit Unit
        deserialize_seq Seq
        deserialize_map Map
        deserialize_identifier Identifier
        deserialize_ignored_any Ignored
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.ask(Hint::UnitStruct(name), visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.ask(Hint::Newtype(name), visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.ask(Hint::Tuple(length), visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.ask(Hint::TupleStruct(name, length), visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.ask(Hint::Struct(name, fields), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.ask(Hint::Enum(name, variants), visitor)
    }
}

/// A visitor, then the value that it made.
struct Holder<'de, V: Visitor<'de>> {
    visitor: Option<V>,
    value: Option<V::Value>,
}

impl<'de, V: Visitor<'de>> Holder<'de, V> {
    fn new(visitor: V) -> Self {
        Self {
            visitor: Some(visitor),
            value: None,
        }
    }

    // Whoever visits consumes a `SinkRef`, of which there is one for each holder.
    fn visitor(&mut self) -> V {
        self.visitor.take().expect("a visitor takes one value")
    }

    fn take(self) -> Result<V::Value, Refusal> {
        self.value.ok_or(NOTHING)
    }
}

impl<'de, V: Visitor<'de>> Sink<'de> for Holder<'de, V> {
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.visitor {
            Some(visitor) => visitor.expecting(f),
            None => Ok(()),
        }
    }

    fn scalar(&mut self, value: Scalar<'_, 'de>) -> Result<(), Refusal> {
        let visitor = self.visitor();
        let made = match value {
            Scalar::Bool(value) => visitor.visit_bool(value),
            Scalar::I64(value) => visitor.visit_i64(value),
            Scalar::U64(value) => visitor.visit_u64(value),
            Scalar::F64(value) => visitor.visit_f64(value),
            Scalar::Char(value) => visitor.visit_char(value),
            Scalar::Str(value) => visitor.visit_str(value),
            Scalar::Borrowed(value) => visitor.visit_borrowed_str(value),
            Scalar::String(value) => visitor.visit_string(value),
            Scalar::Bytes(value) => visitor.visit_bytes(value),
            Scalar::BorrowedBytes(value) => visitor.visit_borrowed_bytes(value),
            Scalar::ByteBuf(value) => visitor.visit_byte_buf(value),
            Scalar::Unit => visitor.visit_unit(),
            Scalar::None => visitor.visit_none(),
        };
        self.value = Some(made?);
        Ok(())
    }

    fn some(&mut self, value: &mut dyn Source<'de>) -> Result<(), Refusal> {
        self.value = Some(self.visitor().visit_some(Handle(value))?);
        Ok(())
    }

    fn newtype(&mut self, value: &mut dyn Source<'de>) -> Result<(), Refusal> {
        self.value = Some(self.visitor().visit_newtype_struct(Handle(value))?);
        Ok(())
    }

    fn seq(&mut self, items: &mut dyn Items<'de>) -> Result<(), Refusal> {
        self.value = Some(self.visitor().visit_seq(ItemsHandle(items))?);
        Ok(())
    }

    fn map(&mut self, entries: &mut dyn Entries<'de>) -> Result<(), Refusal> {
        self.value = Some(self.visitor().visit_map(EntriesHandle(entries))?);
        Ok(())
    }

    fn variant(&mut self, choice: &mut dyn Choice<'de>) -> Result<(), Refusal> {
        self.value = Some(self.visitor().visit_enum(ChoiceHandle(choice))?);
        Ok(())
    }
}

/// A seed, then the value that it made.
struct SeedHolder<'de, S: DeserializeSeed<'de>> {
    seed: Option<S>,
    value: Option<S::Value>,
}

impl<'de, S: DeserializeSeed<'de>> SeedHolder<'de, S> {
    fn new(seed: S) -> Self {
        Self {
            seed: Some(seed),
            value: None,
        }
    }

    fn take(self) -> Result<S::Value, Refusal> {
        self.value.ok_or(NOTHING)
    }
}

impl<'de, S: DeserializeSeed<'de>> Seed<'de> for SeedHolder<'de, S> {
    fn read(&mut self, value: &mut dyn Source<'de>) -> Result<(), Refusal> {
        let seed = self.seed.take().expect("a seed reads one value");
        self.value = Some(seed.deserialize(Handle(value))?);
        Ok(())
    }
}

struct ItemsHandle<'a, 'de>(&'a mut dyn Items<'de>);

impl<'de> SeqAccess<'de> for ItemsHandle<'_, 'de> {
    type Error = Refusal;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Refusal> {
        let mut holder = SeedHolder::new(seed);
        match self.0.next(&mut holder)? {
            true => holder.take().map(Some),
            false => Ok(None),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

struct EntriesHandle<'a, 'de>(&'a mut dyn Entries<'de>);

impl<'de> MapAccess<'de> for EntriesHandle<'_, 'de> {
    type Error = Refusal;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Refusal> {
        let mut holder = SeedHolder::new(seed);
        match self.0.key(&mut holder)? {
            true => holder.take().map(Some),
            false => Ok(None),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Refusal> {
        let mut holder = SeedHolder::new(seed);
        self.0.value(&mut holder)?;
        holder.take()
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

struct ChoiceHandle<'a, 'de>(&'a mut dyn Choice<'de>);

impl<'de> EnumAccess<'de> for ChoiceHandle<'_, 'de> {
    type Error = Refusal;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Refusal> {
        let mut holder = SeedHolder::new(seed);
        self.0.which(&mut holder)?;
        Ok((holder.take()?, self))
    }
}

impl<'de> VariantAccess<'de> for ChoiceHandle<'_, 'de> {
    type Error = Refusal;

    fn unit_variant(self) -> Result<(), Refusal> {
        self.0.unit()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Refusal> {
        let mut holder = SeedHolder::new(seed);
        self.0.newtype(&mut holder)?;
        holder.take()
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, v: V) -> Result<V::Value, Refusal> {
        content(self.0, Content::Tuple(length), v)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        content(self.0, Content::Struct(fields), visitor)
    }
}

fn content<'de, V: Visitor<'de>>(
    choice: &mut dyn Choice<'de>,
    of: Content,
    visitor: V,
) -> Result<V::Value, Refusal> {
    let mut holder = Holder::new(visitor);
    choice.content(of, &mut holder)?;
    holder.take()
}
