//! Inputs in pieces: the first byte of an input says how the rest is cut.

/// Cuts `bytes` into chunks, whose sizes follow from `plan`: the same plan gives the same chunks.
pub(crate) fn chunks(bytes: &[u8], plan: u8) -> Vec<&[u8]> {
    let mut step = u32::from(plan);
    let mut rest = bytes;
    let mut out = Vec::new();
    while !rest.is_empty() {
        // A few bits of a linear congruence: pieces of 1 to 16 bytes, and whole inputs for plan 0.
        step = step.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let size = match plan {
            0 => rest.len(),
            _ => ((step >> 24) as usize % 16 + 1).min(rest.len()),
        };
        let (chunk, after) = rest.split_at(size);
        out.push(chunk);
        rest = after;
    }
    out
}

/// The first byte of an input, and the rest.
pub(crate) fn planned(input: &[u8]) -> (u8, &[u8]) {
    match input.split_first() {
        Some((plan, rest)) => (*plan, rest),
        None => (0, input),
    }
}
