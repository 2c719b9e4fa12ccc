//! The sequencer over a store that commits when told: order, gates, latches.

