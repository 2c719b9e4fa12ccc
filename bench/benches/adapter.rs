//! `cargo bench -p turnwire-bench --bench adapter`: what a delta costs an adapter beside bare
//! parsing of the same stream: first the ratios, then whole answers in divan's words.

use std::hint::black_box;

use divan::{Bencher, counter::ItemsCount};
use turnwire_bench::adapter::{Args, NANOS_MAX, PieceCut, RATIO_MAX, RecordedAnswer, run};
use turnwire_pack::DialectName;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Pieces of text in an answer.
const WORDS: usize = 5_000;

fn main() {
    ratios();
    divan::main();
}

/// Prints what a delta costs.
fn ratios() {
    let args = Args {
        words: WORDS,
        passes: 20,
    };
    println!("goals: ratio at most {RATIO_MAX}, at most {NANOS_MAX} ns a delta");
    for cost in run(args).expect("the fakes' answers can be read") {
        println!(
            "{}, {}: {:.0} ns a delta ({:.0} in a whole call), bare {:.0} ns, ratio {:.2}",
            cost.dialect,
            cost.cut,
            cost.decoder,
            cost.whole,
            cost.bare,
            cost.decoder / cost.bare
        );
    }
}

#[divan::bench(args = DialectName::ALL.map(DialectName::as_str))]
fn decoded(bencher: Bencher<'_, '_>, dialect: &str) {
    let answer = answer(dialect);
    bencher
        .counter(ItemsCount::new(WORDS))
        .bench_local(|| answer.decode(|delta| drop(black_box(delta))));
}

#[divan::bench(args = DialectName::ALL.map(DialectName::as_str))]
fn bare(bencher: Bencher<'_, '_>, dialect: &str) {
    let answer = answer(dialect);
    bencher
        .counter(ItemsCount::new(WORDS))
        .bench_local(|| answer.parse(|text| drop(black_box(text))));
}

fn answer(dialect: &str) -> RecordedAnswer {
    let mut all = DialectName::ALL.into_iter();
    let dialect = all
        .find(|known| known.as_str() == dialect)
        .expect("one of the four");
    RecordedAnswer::new(dialect, PieceCut::Frames, WORDS)
}
