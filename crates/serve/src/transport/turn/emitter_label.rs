//! The sub-agents whose frames are counted apart, as small numbers: a number fits into the tag that the
//! ring stores beside the frames of an event.

use std::sync::OnceLock;

use parking_lot::RwLock;

/// The most sub-agents with a label of their own; the frames of further ones count for their turn. A
/// pack has a handful, and each is a set of series.
const LABELS_MAX: usize = 255;

/// The number of a sub-agent in [`EmitterLabels`]; 0 for everything that is not one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct EmitterLabel(pub(super) u8);

impl EmitterLabel {
    /// Everything that no sub-agent emitted.
    pub(super) const TURN: Self = Self(0);
}

/// The names of the sub-agents of this process, in the order of their first frames, with the
/// verticals that the packs give them.
#[derive(Debug, Default)]
pub(crate) struct EmitterLabels {
    names: RwLock<Vec<String>>,
    verticals: RwLock<Vec<(String, String)>>,
}

impl EmitterLabels {
    /// The labels of this process: metrics are a process's, and a ring's tags outlive a pack.
    pub(crate) fn global() -> &'static Self {
        static LABELS: OnceLock<EmitterLabels> = OnceLock::new();
        LABELS.get_or_init(Self::default)
    }

    /// Sets the verticals of a pack's sub-agents, by id. Those of earlier packs stay.
    pub(crate) fn set_verticals<'a>(&self, agents: impl Iterator<Item = (&'a str, &'a str)>) {
        let agents: Vec<(&str, &str)> = agents.take(LABELS_MAX).collect();
        let is_known = |known: &[(String, String)], (id, vertical): &(&str, &str)| {
            known
                .iter()
                .any(|known| (known.0.as_str(), known.1.as_str()) == (*id, *vertical))
        };
        let known = self.verticals.read();
        if agents.iter().all(|agent| is_known(&known, agent)) {
            return;
        }
        drop(known);
        let mut verticals = self.verticals.write();
        for (id, vertical) in agents {
            verticals.retain(|(known, _)| known != id);
            verticals.push((id.to_owned(), vertical.to_owned()));
        }
        let excess = verticals.len().saturating_sub(LABELS_MAX);
        verticals.drain(..excess);
    }

    /// The label of the sub-agent that an event counts for; that of the turn without one.
    pub(super) fn label(&self, sub_agent: Option<&str>) -> EmitterLabel {
        let Some(name) = sub_agent else {
            return EmitterLabel::TURN;
        };
        let find = |names: &[String]| names.iter().position(|known| known == name);
        let known = find(&self.names.read());
        let position = known.or_else(|| {
            let mut names = self.names.write();
            find(&names).or_else(|| {
                (names.len() < LABELS_MAX).then(|| {
                    names.push(name.to_owned());
                    names.len() - 1
                })
            })
        });
        EmitterLabel(position.map_or(0, |position| position as u8 + 1))
    }

    /// The vertical and the id of a sub-agent; empty for the turn itself.
    pub(super) fn name(&self, label: EmitterLabel) -> (String, String) {
        let names = self.names.read();
        let position = usize::from(label.0).checked_sub(1);
        let id = position.and_then(|position| names.get(position).cloned());
        let id = id.unwrap_or_default();
        let verticals = self.verticals.read();
        let vertical = verticals.iter().find(|(known, _)| *known == id);
        let vertical = vertical.map(|(_, vertical)| vertical.clone());
        (vertical.unwrap_or_default(), id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sub_agents_have_labels_and_others_are_the_turn() {
        let labels = EmitterLabels::default();
        labels.set_verticals([("shop", "retail")].into_iter());
        assert_eq!(labels.label(None), EmitterLabel::TURN);
        let shop = labels.label(Some("shop"));
        assert_eq!(labels.label(Some("shop")), shop);
        let other = labels.label(Some("other"));
        assert_ne!(shop, other);
        assert_eq!(labels.name(shop), ("retail".to_owned(), "shop".to_owned()));
        assert_eq!(labels.name(other), (String::new(), "other".to_owned()));
        for number in 0..LABELS_MAX {
            labels.label(Some(&format!("many-{number}")));
        }
        assert_eq!(labels.label(Some("late")), EmitterLabel::TURN);
    }
}
