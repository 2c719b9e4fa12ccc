//! Runs all readers on one stream, each behind its own proxy, and compares their results.

use turnwire_event::ResponseId;
use turnwire_testkit::server::TestServer;

use super::proxy::{Manner, Proxy};
use super::readers::{Kind, Reader};
use super::reference::Event;

/// The readers, each with what it reads.
pub(crate) struct Readings {
    readers: Vec<Reader>,
    /// All proxies, to check at the end that no reader reconnected.
    pub(crate) proxies: Vec<(Kind, Proxy)>,
}

impl Readings {
    pub(crate) async fn start() -> Self {
        let starting = || Kind::ALL.map(Reader::start).into_iter().collect();
        let readers = tokio::task::spawn_blocking(starting).await;
        Self {
            readers: readers.expect("readers"),
            proxies: Vec::new(),
        }
    }

    /// Gives every reader a proxy of its own to the server.
    pub(crate) async fn behind(&mut self, server: &TestServer, manner: &Manner) -> Reading<'_> {
        let first = self.proxies.len();
        for reader in &self.readers {
            let proxy = Proxy::start(server.addr(), manner.clone()).await;
            self.proxies.push((reader.kind, proxy));
        }
        Reading { of: self, first }
    }

    /// Asserts that no reader reconnected after its stream was complete. Each reader has reconnected
    /// to another stream since, so the time for it has passed.
    pub(crate) fn nobody_came_back(&self) {
        for (kind, proxy) in &self.proxies {
            let statuses: Vec<u16> = proxy
                .requests()
                .iter()
                .map(|request| request.status)
                .collect();
            let (last, before) = statuses.split_last().expect("an answer");
            assert_eq!(*last, 204, "{kind:?}: {statuses:?}");
            assert!(
                before.iter().all(|status| *status == 200),
                "{kind:?}: {statuses:?}"
            );
        }
    }
}

/// One stream that all readers read at once.
pub(crate) struct Reading<'a> {
    of: &'a mut Readings,
    first: usize,
}

impl Reading<'_> {
    /// Reads to the end; `meanwhile` happens while they read.
    pub(crate) async fn read<T>(
        self,
        response: ResponseId,
        meanwhile: impl AsyncFnOnce(&[(Kind, Proxy)]) -> T,
    ) -> (Vec<(Kind, Vec<Event>)>, T) {
        let path = format!("/chat/{response}/stream");
        let (readers, proxies) = (&mut self.of.readers, &self.of.proxies[self.first..]);
        let reading: Vec<_> = std::mem::take(readers)
            .into_iter()
            .zip(proxies)
            .map(|(mut reader, (_, proxy))| {
                let (base, path) = (proxy.base(), path.clone());
                tokio::task::spawn_blocking(move || {
                    let events = reader.read(&base, &path);
                    (reader, events)
                })
            })
            .collect();
        let meanwhile = meanwhile(proxies).await;
        let mut lists = Vec::new();
        for task in reading {
            let (reader, events) = task.await.expect("a reading");
            lists.push((reader.kind, events));
            readers.push(reader);
        }
        for (kind, proxy) in proxies {
            assert!(proxy.is_spent(), "{kind:?} was cut as often as it should");
        }
        (lists, meanwhile)
    }

    /// Reads a turn that is over; all must read `wanted`.
    pub(crate) async fn reads(self, response: ResponseId, wanted: &[Event]) {
        let (lists, ()) = self.read(response, async |_| ()).await;
        agree(&lists, wanted);
    }
}

/// All readers have the same list.
pub(crate) fn agree(lists: &[(Kind, Vec<Event>)], wanted: &[Event]) {
    for (kind, list) in lists {
        let mut wanted = wanted.to_vec();
        // To this package an event without an id of its own has none; to all others, and by the
        // standard, it has that of the event before it.
        if *kind == Kind::Package
            && let Some(done) = wanted.last_mut().filter(|last| last.2 == "[DONE]")
        {
            done.0.clear();
        }
        let apart = list.iter().zip(&wanted).position(|(a, b)| a != b);
        if let Some(at) = apart {
            panic!("{kind:?} read {:?}, not {:?}", list[at], wanted[at]);
        }
        assert_eq!(list.len(), wanted.len(), "{kind:?}");
    }
}
