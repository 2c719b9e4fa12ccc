//! Two servers with the same settings and the same data of the greedy owner: the subject, which the
//! quiet owners use, and the other one, which takes the greedy load in the reference phase.

use std::io;
use std::time::Duration;

use turnwire_testkit::journal::Journal;
use turnwire_testkit::server::TestServer;

use super::client::LoadClient;
use super::greedy::{GreedyLoad, GreedyReport};
use super::memory::{MemoryGuard, peak_mib};
use super::quiet::{self, QuietOwner};
use super::resource::{self, SharedResource};
use super::sample::QuietSample;

/// Requests of the quiet owners that are not measured, after the load has its intensity.
const WARM: Duration = Duration::from_millis(900);

/// The server that the greedy load runs against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The load runs against the other server.
    Reference,
    /// The load runs against the server of the quiet owners.
    Attack,
}

/// What one phase measured.
#[derive(Debug)]
pub struct PhaseOutcome {
    pub samples: Vec<QuietSample>,
    pub greedy: GreedyReport,
    /// Peak memory of the subject; `None` if it ended.
    pub peak_mib: Option<u64>,
}

/// One server with the greedy owner's data.
#[derive(Debug)]
struct FilledServer {
    server: TestServer,
    /// The session that the greedy load reads.
    session: String,
}

impl FilledServer {
    async fn start(resource: SharedResource) -> io::Result<Self> {
        let options = resource::options();
        let server = TestServer::try_start(options, Journal::new()).await;
        let server = server.map_err(io::Error::other)?;
        let session = resource.fill(&greedy_client(&server)).await?;
        Ok(Self { server, session })
    }

    /// Starts the process again, so that no work of an earlier phase is left in it.
    async fn restart(&mut self) -> io::Result<()> {
        self.server.kill().await;
        self.server.run().await.map_err(io::Error::other)
    }
}

fn greedy_client(server: &TestServer) -> LoadClient {
    LoadClient::new(server.addr(), "greedy")
}

/// The two servers of a resource.
#[derive(Debug)]
pub struct Arena {
    resource: SharedResource,
    subject: FilledServer,
    other: FilledServer,
    owners: Vec<QuietOwner>,
}

impl Arena {
    /// Starts and fills both servers.
    pub async fn open(resource: SharedResource) -> io::Result<Self> {
        let (subject, other) =
            tokio::try_join!(FilledServer::start(resource), FilledServer::start(resource))?;
        let owners = QuietOwner::all(subject.server.addr()).await?;
        Ok(Self {
            resource,
            subject,
            other,
            owners,
        })
    }

    /// Restarts both servers and measures the quiet owners for `time`.
    pub async fn run(&mut self, phase: Phase, time: Duration) -> io::Result<PhaseOutcome> {
        tokio::try_join!(self.subject.restart(), self.other.restart())?;
        let pid = self.subject.server.pid();
        let guards = [pid, self.other.server.pid()].map(MemoryGuard::watch);
        let target = match phase {
            Phase::Reference => &self.other,
            Phase::Attack => &self.subject,
        };
        let load = GreedyLoad::start(
            self.resource,
            greedy_client(&target.server),
            target.session.clone(),
        );
        load.ramped().await;
        quiet::run(&self.owners, WARM).await;
        let samples = quiet::run(&self.owners, time).await;
        let peak = peak_mib(pid);
        let greedy = load.stop();
        for guard in guards {
            guard.stop();
        }
        Ok(PhaseOutcome {
            samples,
            greedy,
            peak_mib: peak,
        })
    }
}
