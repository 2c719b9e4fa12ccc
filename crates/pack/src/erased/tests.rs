//! Whatever is read, and however it is wrong, the result is that of the parser without trait
//! objects.

#![allow(dead_code, reason = "fields are compared by how they print")]

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::Spanned;

use super::from_str;
use crate::place::{At, Place};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    name: Spanned<String>,
    count: Option<u8>,
    signed: Option<i16>,
    ratio: Option<f32>,
    flag: Option<bool>,
    letter: Option<char>,
    list: Option<Vec<Spanned<Inner>>>,
    by_name: Option<BTreeMap<String, Inner>>,
    choice: Option<Choice>,
    pair: Option<(u32, String)>,
    any: Option<Value>,
    #[serde(default)]
    tail: Tail,
}

#[derive(Debug, Deserialize)]
struct Inner {
    id: u64,
}

#[derive(Debug, Default, Deserialize)]
struct Tail(Option<String>);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Choice {
    Plain,
    Newtype(u32),
    Tuple(u32, bool),
    Struct { a: String },
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Either {
    Text(String),
    List(Vec<u32>),
    Whole(Inner),
}

fn same<T: Debug + DeserializeOwned>(text: &str) {
    let direct: Result<T, _> = serde_saphyr::from_str(text);
    let erased: Result<T, _> = from_str(text);
    assert_eq!(format!("{erased:?}"), format!("{direct:?}"), "{text}");
}

#[test]
fn what_fits_is_read_the_same() {
    for text in [
        "name: a",
        "name: 1.50\ncount: 255\nsigned: -7\nratio: 0.1\nflag: true\nletter: é",
        "name: a\nlist: [{id: 1}, {id: 0x1F}]\nby_name: {x: {id: 2}}",
        "name: a\nchoice: plain",
        "name: a\nchoice: {newtype: 3}",
        "name: a\nchoice: {tuple: [3, true]}",
        "name: a\nchoice: {struct: {a: b}}",
        "name: a\npair: [1, two]\nany: {deep: [1, 2.5, null, yes, ~, \"3\"]}\ntail: end",
        "name: &n a\nany: [*n, *n]\ntail: *n",
        "base: &b {id: 7}\n",
        "name: |\n  several\n  lines\ncount:\ntail: ~",
        "name: !!str 5",
    ] {
        same::<Shape>(text);
        same::<Value>(text);
    }
    for text in ["words", "[1, 2]", "{id: 4}", "7", "~"] {
        same::<Either>(text);
        same::<Option<Spanned<Either>>>(text);
    }
}

#[test]
fn what_does_not_fit_is_refused_the_same() {
    for text in [
        "",
        "[]",
        "text",
        "name: [a]",
        "name: a\nname: b",
        "name: a\nnmae: b",
        "nothing: here",
        "name: a\ncount: 256",
        "name: a\ncount: -1",
        "name: a\ncount: \"3\"",
        "name: a\ncount: many",
        "name: a\nsigned: 40000",
        "name: a\nflag: maybe",
        "name: a\nflag: yes",
        "name: a\nletter: long",
        "name: a\nlist: {id: 1}",
        "name: a\nlist: [{id: one}]",
        "name: a\nlist: [{}]",
        "name: a\nby_name: [1]",
        "name: a\nchoice: other",
        "name: a\nchoice: {newtype: text}",
        "name: a\nchoice: {tuple: [1]}",
        "name: a\nchoice: {struct: {b: 1}}",
        "name: a\npair: [1]",
        "name: a\npair: [1, 2, 3]",
        "name: *gone",
        "name: \"open",
        "name: a\n\tcount: 1",
        "name: a\n---\nname: b",
        "name: ~",
        "a: &a [*a]",
        "name: a: b",
        "{name: a, count: ]",
    ] {
        same::<Shape>(text);
        same::<Value>(text);
        same::<Either>(text);
        same::<Spanned<Shape>>(text);
        same::<u64>(text);
    }
}

#[test]
fn a_value_with_its_place_stands_where_the_parser_says() {
    for text in [
        "- a\n-   b\n- {k: [1,\n    2]}\n-\n- |\n  text\n",
        "- &x {k: 1}\n- *x\n- !!str 7\n",
        "- [1, 2\n",
        "a: 1",
        "- *gone",
    ] {
        let direct: Result<Vec<Spanned<Value>>, _> = serde_saphyr::from_str(text);
        let erased: Result<Vec<At<Value>>, _> = from_str(text);
        let direct = direct.map(|list| {
            let place = |at: Spanned<Value>| (at.value, Place::from(at.referenced));
            list.into_iter().map(place).collect::<Vec<_>>()
        });
        let erased = erased.map(|list| {
            let place = |at: At<Value>| (at.value, at.place);
            list.into_iter().map(place).collect::<Vec<_>>()
        });
        assert_eq!(format!("{erased:?}"), format!("{direct:?}"), "{text}");
    }
}

/// A visitor that answers the parser's error with its own.
#[derive(Debug)]
struct Reworded;

impl<'de> Deserialize<'de> for Reworded {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let read = Vec::<u8>::deserialize(from);
        read.map(|_| Self)
            .map_err(|_| serde::de::Error::custom("three small numbers, please"))
    }
}

#[test]
fn an_error_that_a_type_puts_in_the_place_of_another_is_kept() {
    let error = from_str::<BTreeMap<String, Reworded>>("a: [1, 2]\nb: [300]").expect_err("refused");
    assert!(error.to_string().contains("three small numbers"), "{error}");
    assert!(from_str::<BTreeMap<String, Reworded>>("a: [1, 2]").is_ok());
}
