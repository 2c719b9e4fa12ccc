//! The campaign: for each resource some rounds of a reference and an attack, then the verdict.

use std::time::{Duration, Instant};

use super::arena::{Arena, Phase};
use super::figures::FairnessLimits;
use super::memory::HARD_MIB;
use super::quiet::{INTERVAL, OWNERS};
use super::report::{ResourceReport, tables};
use super::resource::SharedResource;

/// The measured time of a phase.
const PHASE: Duration = Duration::from_millis(3_600);

/// The options of a campaign.
#[derive(Clone, Debug)]
pub struct FairnessOptions {
    /// Rounds of a reference and an attack per resource.
    pub rounds: usize,
    pub resources: Vec<SharedResource>,
    pub limits: FairnessLimits,
    /// The measured time of a phase.
    pub phase: Duration,
}

impl FairnessOptions {
    /// All resources, with the default limits; `TURNWIRE_FAIRNESS_MIB` changes the memory budget and
    /// `TURNWIRE_FAIRNESS_ONLY` lists the resources to measure.
    pub fn from_env(rounds: usize) -> Result<Self, String> {
        let mut options = Self {
            rounds,
            resources: SharedResource::ALL.to_vec(),
            limits: FairnessLimits::default(),
            phase: PHASE,
        };
        if let Ok(budget) = std::env::var("TURNWIRE_FAIRNESS_MIB") {
            let mib = budget.parse();
            options.limits.memory_mib =
                mib.map_err(|_| format!("TURNWIRE_FAIRNESS_MIB: {budget:?} is not a number"))?;
        }
        if let Ok(names) = std::env::var("TURNWIRE_FAIRNESS_ONLY") {
            let read = |name| SharedResource::read(name).ok_or(format!("no resource {name:?}"));
            let resources: Result<_, String> = names.split(',').map(read).collect();
            options.resources = resources?;
        }
        Ok(options)
    }
}

/// Runs all rounds of each resource, one resource after the other.
pub async fn measure(options: &FairnessOptions) -> Vec<ResourceReport> {
    let mut reports = Vec::with_capacity(options.resources.len());
    for &resource in &options.resources {
        let started = Instant::now();
        let mut report = ResourceReport::new(resource);
        if let Err(error) = measure_resource(options, &mut report).await {
            println!("{}: {error}", resource.name());
            report.ended = true;
        }
        println!(
            "{}: measured in {:.0} s",
            resource.name(),
            started.elapsed().as_secs_f64()
        );
        reports.push(report);
    }
    reports
}

async fn measure_resource(
    options: &FairnessOptions,
    report: &mut ResourceReport,
) -> std::io::Result<()> {
    let mut arena = Arena::open(report.resource).await?;
    for round in 0..options.rounds {
        // The order alternates, so that neither phase always comes first.
        let order = match round % 2 {
            0 => [Phase::Reference, Phase::Attack],
            _ => [Phase::Attack, Phase::Reference],
        };
        for phase in order {
            let outcome = arena.run(phase, options.phase).await?;
            let index = usize::from(phase == Phase::Attack);
            report.greedy[index] = report.greedy[index].plus(outcome.greedy);
            match phase {
                Phase::Reference => report.reference.extend(outcome.samples),
                Phase::Attack => {
                    report.attack.extend(outcome.samples);
                    report.ended |= outcome.peak_mib.is_none();
                    let peak = outcome.peak_mib.unwrap_or(HARD_MIB);
                    report.peak_mib = report.peak_mib.max(peak);
                }
            }
        }
    }
    Ok(())
}

/// Measures every resource and prints the tables; returns the number of resources that broke a
/// rule.
pub async fn run(options: &FairnessOptions) -> usize {
    let limits = options.limits;
    println!(
        "fairness: {OWNERS} quiet owners, a request each every {} ms, beside a greedy one; \
         {} rounds of {:.1} s against another server (reference) and the same one (attack); \
         allowed: p95 {} times the reference, no failure, {} MiB\nserver: {}",
        INTERVAL.as_millis(),
        options.rounds,
        options.phase.as_secs_f64(),
        limits.ratio_max,
        limits.memory_mib,
        turnwire_testkit::server::binary().display(),
    );
    let reports = measure(options).await;
    println!("\n{}", tables(&reports, limits));
    let broken = |report: &&ResourceReport| !report.violations(limits).is_empty();
    reports.iter().filter(broken).count()
}
