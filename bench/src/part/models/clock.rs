//! A provider that keeps time, alone or behind Turnwire, and the readers that ask one of them.

use std::io;

use turnwire_testkit::pack::TestPack;

use crate::load::models::Outcome;
use crate::machine;
use crate::paced::CHAT_STREAMS_MAX;
use crate::part::BenchConfig;
use crate::process::{CorePlacement, ServerProcess};

/// The pack file that says where the provider is.
const PROVIDERS: &str = "providers:\n  clock: {dialect: openai_chat, base_url: 'URL/v1'}\n";

/// The one that says what it costs.
const PRICES: &str = "prices: {'clock:*': {input: 1.0, output: 2.0}}\n";

/// How the provider speaks.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    pub(super) words: u64,
    pub(super) think_ms: u64,
    pub(super) every_us: u64,
}

/// The provider, with Turnwire before it or not.
pub(super) struct Clock {
    turnwire: Option<ServerProcess>,
    provider: ServerProcess,
}

/// One run of the readers.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) at_once: u64,
    pub(super) warm: u64,
    pub(super) turns: u64,
    pub(super) spread_ms: u64,
    pub(super) settle_ms: u64,
}

/// What a run gave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) load: Outcome,
    /// Seconds of processor of the provider.
    pub(super) provider_cpu: f64,
}

impl Clock {
    pub(super) fn alone(bench: &BenchConfig, pace: Pace) -> io::Result<Self> {
        let mut command = bench.program.role(&["provider"]);
        for (name, value) in [
            ("--words", pace.words),
            ("--think-ms", pace.think_ms),
            ("--every-us", pace.every_us),
        ] {
            command.args([name, &value.to_string()]);
        }
        Ok(Self {
            turnwire: None,
            provider: ServerProcess::start_at(CorePlacement::LastCore, command)?,
        })
    }

    /// The same provider behind Turnwire.
    pub(super) fn behind_turnwire(bench: &BenchConfig, pace: Pace) -> io::Result<Self> {
        let mut clock = Self::alone(bench, pace)?;
        let url = format!("http://{}", clock.provider.address);
        let pack = bench.data.join("pack");
        TestPack::market(&url)
            .change("pack.yaml", "scripted:stage", "clock:clock")
            .put("providers.yaml", &PROVIDERS.replace("URL", &url))
            .put("prices.yaml", PRICES)
            .write(&pack)?;
        let dir = bench.fresh_dir("models")?;
        let env = [
            ("TURNWIRE_STORE_DURABILITY", "full"),
            ("TURNWIRE_STREAM_CHAT_STREAMS_MAX", CHAT_STREAMS_MAX),
        ];
        let mut command = bench.turnwire(&dir, &env);
        command.arg("--pack").arg(pack);
        clock.turnwire = Some(ServerProcess::start(command)?);
        Ok(clock)
    }

    /// Lets readers read, then stops.
    pub(super) fn run(self, bench: &BenchConfig, load: Load) -> io::Result<Told> {
        let before = machine::cpu_time(self.provider.pid())?;
        let mut args = self.turnwire.as_ref().unwrap_or(&self.provider).target();
        for (name, value) in [
            ("--at-once", load.at_once),
            ("--warm", load.warm),
            ("--turns", load.turns),
            ("--spread-ms", load.spread_ms),
            ("--settle-ms", load.settle_ms),
        ] {
            args.extend([name.to_owned(), value.to_string()]);
        }
        let reads = match self.turnwire {
            Some(_) => "chat",
            None => "completions",
        };
        args.push(format!("--reads={reads}"));
        let outcome: Outcome = bench
            .program
            .tell(CorePlacement::LastCore, &["models"], &args)?;
        if outcome.busy > 0 {
            bench.say(&format!("{} posts met a held lock", outcome.busy));
        }
        if outcome.completed < outcome.turns {
            let broken = outcome.turns - outcome.completed;
            return Err(io::Error::other(format!("{broken} turns did not end well")));
        }
        let provider_cpu = machine::cpu_time(self.provider.pid())?.saturating_sub(before);
        if let Some(turnwire) = self.turnwire {
            turnwire.stop()?;
        }
        self.provider.stop()?;
        Ok(Told {
            load: outcome,
            provider_cpu: provider_cpu.as_secs_f64(),
        })
    }
}
