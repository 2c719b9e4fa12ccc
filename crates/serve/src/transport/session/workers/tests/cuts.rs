//! A client that is cut again and again while workers begin, speak and end, and comes back with
//! the map: what it got in the end is what happened, each thing once and in order.

use std::collections::{HashMap, HashSet};

use turnwire_event::{Body, Event, MessageId, SessionId};

use super::super::START;
use super::stage::*;
use super::viewer::*;

/// Cuts in all; every one is followed by a resume with the map.
const CUTS: usize = 500;

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// One at work: its employer, and the message it is saying.
struct Hand {
    acting: Acting,
    of: Option<SessionId>,
    saying: Option<Half>,
}

/// Sessions that do something at random.
struct Play<'a> {
    stage: &'a Stage,
    hands: Vec<Hand>,
    done: Vec<Acting>,
}

impl Play<'_> {
    async fn step(&mut self, dice: &mut Dice) {
        let index = dice.below(self.hands.len());
        let id = self.hands[index].acting.id();
        let employs = self.hands.iter().any(|hand| hand.of == Some(id));
        let depth = usize::from(self.hands[index].of.is_some())
            + usize::from(
                self.hands[index]
                    .of
                    .is_some_and(|of| of != self.hands[0].acting.id()),
            );
        match dice.below(10) {
            0 if self.hands.len() < 6 && depth < 2 => {
                let worker = self.stage.acting(Some(id)).await;
                self.hands[index].acting.delegates(worker.id()).await;
                self.hands.push(Hand {
                    acting: worker,
                    of: Some(id),
                    saying: None,
                });
            }
            1 | 2 if index > 0 && !employs => {
                let mut hand = self.hands.remove(index);
                if let Some(half) = hand.saying {
                    hand.acting.has_said(half).await;
                }
                hand.acting.ends().await;
                let employer = self
                    .hands
                    .iter()
                    .find(|other| Some(other.acting.id()) == hand.of);
                let employer = employer.expect("it outlives its workers");
                employer.acting.has_done(id, dice.chance(50)).await;
                self.done.push(hand.acting);
            }
            3 | 4 => {
                let hand = &mut self.hands[index];
                match hand.saying.take() {
                    Some(half) => hand.acting.has_said(half).await,
                    None => hand.saying = Some(hand.acting.begins_to_say("well ").await),
                }
            }
            _ => {
                let hand = &self.hands[index];
                if let Some(half) = hand.saying {
                    hand.acting.says(half, "so it goes ").await;
                }
            }
        }
    }
}

/// What one client has kept over all its connections.
#[derive(Default)]
struct Kept {
    events: Vec<Event>,
}

impl Kept {
    /// Every session told once, in order, whole; workers between their starts and ends.
    async fn judge(&self, parent: &Acting, workers: &[Acting], stage: &Stage) {
        super::assert_in_order(&self.events);
        for session in std::iter::once(parent).chain(workers) {
            let id = session.id();
            let told = self.events.iter().filter(|event| event.session_id == id);
            let told: Vec<_> = told
                .filter(|event| event.body.kind().is_persisted())
                .map(|event| event.id)
                .collect();
            let log: Vec<_> = session
                .log(stage)
                .await
                .iter()
                .map(|event| event.id)
                .collect();
            assert_eq!(told, log, "{id}");
        }
        let mut words: HashMap<MessageId, String> = HashMap::new();
        let mut whole = HashSet::new();
        for event in &self.events {
            match &event.body {
                Body::TextDelta(delta) => words
                    .entry(delta.message_id)
                    .or_default()
                    .push_str(&delta.text),
                Body::MessageComplete(end) => {
                    assert!(whole.insert(end.message_id), "told twice");
                    let said = words.remove(&end.message_id).unwrap_or_default();
                    let content = end.final_content.first();
                    let text = content
                        .and_then(|block| block.as_text())
                        .unwrap_or_default();
                    assert!(said.is_empty() || said == text, "{said:?} of {text:?}");
                }
                _ => {}
            }
        }
        assert!(words.is_empty(), "a message without an end");
    }
}

// F5, S3-087
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_cut_anywhere_gets_every_session_once_in_order() {
    cut_often(false).await;
}

// F5, S3-087
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn positions_of_acks_and_pings_are_valid_cursors() {
    cut_often(true).await;
}

async fn cut_often(trusts: bool) {
    let (mut dice, mut cuts, mut round) = (Dice(0x9e37_79b9_7f4a_7c15), 0, 0);
    while cuts < CUTS {
        let dir = tempfile::tempdir().expect("a folder");
        // A small ring, so that the store is read in the midst of it.
        let options = turnwire_session::Options {
            ring_events: if round % 2 == 0 { 64 } else { 4096 },
            ..turnwire_session::Options::default()
        };
        let stage = Stage::with(dir.path(), options, 64).await;
        cuts += play(&stage, &mut dice, trusts).await;
        round += 1;
    }
}

/// One parent's life and one client's, which keeps its own cursors, or `trusts` what acks and
/// pings say; gives back how often it was cut.
async fn play(stage: &Stage, dice: &mut Dice, trusts: bool) -> usize {
    let parent = stage.acting(None).await;
    let root = parent.live.clone();
    let mut play = Play {
        stage,
        hands: vec![Hand {
            acting: parent,
            of: None,
            saying: None,
        }],
        done: Vec::new(),
    };
    let (mut kept, mut cuts) = (Kept::default(), 0);
    let mut at = cursors(root.id, START, &[]);
    for _ in 0..60 {
        let viewer = stage.view(&root, &with_workers(), Some(since(&at))).await;
        let mut viewer = viewer.unwrap_or_else(|error| panic!("{error} {at:?}"));
        if trusts {
            at = viewer.stands();
        }
        for _ in 0..dice.below(6) {
            play.step(dice).await;
            for _ in 0..dice.below(4) {
                viewer.fill().await.expect("served");
            }
            // A ping comes after all that was told before it.
            if trusts && dice.chance(20) {
                kept.events.extend(viewer.came());
                at = viewer.stands();
            }
        }
        let mut came = if dice.chance(30) {
            viewer.served().await
        } else {
            let came = viewer.came();
            let part = dice.below(came.len() + 1);
            came.into_iter().take(part).collect()
        };
        heed(&mut at, &came);
        kept.events.append(&mut came);
        cuts += 1;
    }
    while play.hands.len() > 1 {
        play.step(dice).await;
    }
    let mut parent = play.hands.remove(0);
    if let Some(half) = parent.saying {
        parent.acting.has_said(half).await;
    }
    parent.acting.ends().await;
    let viewer = stage.view(&root, &with_workers(), Some(since(&at))).await;
    kept.events.extend(viewer.expect("accepted").served().await);
    kept.judge(&parent.acting, &play.done, stage).await;
    cuts
}
