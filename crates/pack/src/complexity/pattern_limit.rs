//! The patterns of a schema against their limits.

use std::collections::HashSet;

use super::graph::SchemaGraph;
use super::keyword::pointer;
use super::pattern::{compiles, parse};
use super::{ComplexityLimit, TooComplex};
use crate::text::wording::one_line;

/// Bytes of all compiled patterns of a schema, estimated.
const SCHEMA_BYTES_MAX: u64 = 32 << 20;

/// Fails with the first pattern of a schema that cannot be used.
pub(super) fn check(graph: &SchemaGraph) -> Result<(), TooComplex> {
    let (mut seen, mut bytes) = (HashSet::new(), 0_u64);
    for (part, at) in graph.parts.iter().zip(&graph.pointers) {
        let own = part.pattern.iter().map(|own| (own, pointer(at, "pattern")));
        let by_pattern = part.by_pattern.iter().map(|(pattern, _)| {
            let names = pointer(at, "patternProperties");
            (pattern, self::pointer(&names, &pattern.text))
        });
        for (pattern, at) in own.chain(by_pattern) {
            if !seen.insert(&pattern.text) {
                continue;
            }
            bytes = bytes.saturating_add(pattern.bytes);
            let limit = match parse(&pattern.text) {
                Err(limit) => limit,
                Ok(_) if bytes > SCHEMA_BYTES_MAX => ComplexityLimit::PatternSize,
                Ok(_) if !compiles(&pattern.text) => ComplexityLimit::PatternSize,
                Ok(_) => continue,
            };
            let reason = match limit {
                ComplexityLimit::Backtracking => "has a look-around or a back-reference",
                ComplexityLimit::PatternSize
                    if pattern.bytes <= SCHEMA_BYTES_MAX && bytes > SCHEMA_BYTES_MAX =>
                {
                    "is too large together with the others"
                }
                ComplexityLimit::PatternSize => "is too large with its repeats written out",
                _ => "is not a regular expression",
            };
            let message = format!("the `pattern` `{}` {reason}", one_line(&pattern.text));
            return Err(TooComplex {
                limit,
                ..TooComplex::new(message, &at)
            });
        }
    }
    Ok(())
}
