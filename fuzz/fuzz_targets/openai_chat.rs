//! The target `openai_chat`; its reader and its properties are in `fuzz/targets`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| turnwire_fuzz_targets::run("openai_chat", input));
