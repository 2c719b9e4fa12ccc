//! `cargo bench -p turnwire-bench --bench policy`: what a decision of the interceptor costs beside
//! a bare lookup in a map (S1-058): first the ratios, then the same in divan's words.

use std::hint::black_box;

use divan::Bencher;
use turnwire_bench::policy::{PolicyRound, RATIO_MAX, called, look, run, said, searching, words};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    ratios();
    divan::main();
}

/// Prints what the gate costs beside a lookup.
fn ratios() {
    let spent = run().expect("this program installs one recorder");
    println!("a bare lookup: {:.1} ns", spent.bare);
    for (name, nanos, goal) in [
        ("text.delta forwarded", spent.text, Some(RATIO_MAX)),
        ("tool.called forwarded", spent.tool, Some(RATIO_MAX)),
        ("status.emitted transformed", spent.status, None),
    ] {
        let goal = goal.map_or(String::new(), |max| format!(" (at most {max} is the goal)"));
        println!(
            "ratio {name}: {nanos:.1} ns, {:.2}{goal}",
            nanos / spent.bare
        );
    }
}

#[divan::bench(sample_size = 1000)]
fn bare_lookup(bencher: Bencher<'_, '_>) {
    let map = words();
    bencher.bench_local(|| look(&map, black_box("text.delta")));
}

#[divan::bench(sample_size = 1000)]
fn text_delta_forwarded(bencher: Bencher<'_, '_>) {
    let mut round = PolicyRound::new(said());
    bencher.bench_local(|| round.pass());
}

#[divan::bench(sample_size = 1000)]
fn tool_called_forwarded(bencher: Bencher<'_, '_>) {
    let mut round = PolicyRound::new(called());
    bencher.bench_local(|| round.pass());
}

#[divan::bench(sample_size = 1000)]
fn status_transformed(bencher: Bencher<'_, '_>) {
    let mut round = PolicyRound::new(searching());
    bencher.bench_local(|| round.pass());
}
