//! A producer whose pace the load client sets: the in-process end of a fan-out run.
//!
//! A turn takes the side channel that waits, opens a message, and emits one `text.delta` for
//! each permit. What follows the port is Turnwire as it is: sequencer, hub, wire, sockets.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};
use turnwire_event::body::llm::CallStarted;
use turnwire_event::body::stream::{MessageStart, TextDelta};
use turnwire_event::body::turn::{BoundVersions, TurnError};
use turnwire_event::code::{CallPurpose, ErrorCode, TurnStatus};
use turnwire_event::metric::SubAgentVerticals;
use turnwire_event::port::{
    BoundTurn, Emission, EmitError, EventEmitter, HistoryBudget, MessageEnd, TurnContext,
    TurnInput, TurnOutcome, TurnProducer,
};
use turnwire_event::{
    Actor, Body, CallId, MessageId, Position, Role, StopReason, TokenUsage, Ulid,
};

use turnwire_render::RenderPolicies;

use crate::sample::WORDS;
use crate::window::WindowPermits;

/// The name under which it answers.
const MODEL: &str = "paced";

/// Emits at the pace of a side channel.
#[derive(Debug)]
pub struct PacedProducer {
    /// Side channels that wait for a turn; the listener holds the other end.
    sides: Arc<Mutex<mpsc::Receiver<TcpStream>>>,
}

impl PacedProducer {
    /// Takes side channels from `sides`, one a turn that asks for it.
    pub fn new(sides: mpsc::Receiver<TcpStream>) -> Self {
        Self {
            sides: Arc::new(Mutex::new(sides)),
        }
    }
}

impl TurnProducer for PacedProducer {
    fn history(&self) -> HistoryBudget {
        HistoryBudget {
            messages_max: 0,
            bytes_max: 0,
        }
    }

    fn bind(&self, _: &TurnInput) -> BoundTurn {
        let sides = self.sides.clone();
        BoundTurn {
            relayed_to: None,
            experiment_arm: String::new(),
            verticals: SubAgentVerticals::default(),
            versions: BoundVersions {
                agent_definition: MODEL.to_owned(),
                ..BoundVersions::default()
            },
            history: self.history(),
            gate: RenderPolicies::default_gate(MODEL),
            work: Box::new(|turn| Box::pin(answer(sides, turn))),
        }
    }
}

async fn answer(sides: Arc<Mutex<mpsc::Receiver<TcpStream>>>, turn: TurnContext) -> TurnOutcome {
    // A turn that is not paced is there to have been: feedback needs one to speak of.
    let input_texts = turn.input.content.iter();
    let paced = input_texts
        .filter_map(|block| block.as_text())
        .any(|text| text == MODEL);
    if !paced {
        return outcome(TurnStatus::Ok);
    }
    let side = sides.lock().await.recv().await;
    match stream(&turn, side).await {
        Ok(()) => outcome(TurnStatus::Ok),
        Err(error) => {
            eprintln!("paced turn: {error}");
            outcome(TurnStatus::Failed)
        }
    }
}

fn outcome(status: TurnStatus) -> TurnOutcome {
    TurnOutcome {
        cancelled: None,
        reason: None,
        status,
        error: (status == TurnStatus::Failed).then(|| TurnError::from(ErrorCode::InternalError)),
    }
}

/// One message, as long as the order says.
async fn stream(turn: &TurnContext, side: Option<TcpStream>) -> io::Result<()> {
    let mut pace = WindowPermits::open(side.ok_or(io::ErrorKind::BrokenPipe)?).await?;
    let fresh = |offset| Ulid(turn.input.turn_id.0.0.wrapping_add(offset));
    let (call_id, message_id) = (CallId(fresh(1)), MessageId(fresh(2)));
    let emitter = &*turn.emitter;
    let started = CallStarted {
        call_id,
        model: MODEL.to_owned(),
        purpose: CallPurpose::Orchestrate,
        attempt: 1,
        first: true,
    };
    let at = emit(emitter, Body::LlmCallStarted(started)).await?;
    emitter.committed(at).await.map_err(io::Error::other)?;
    let start = MessageStart {
        message_id,
        role: Role::Assistant,
        model: MODEL.to_owned(),
    };
    emit(emitter, Body::MessageStart(start)).await?;
    loop {
        let permits = pace.permits().await?;
        if permits == 0 {
            break;
        }
        for _ in 0..permits {
            let delta = TextDelta {
                message_id,
                content_block_index: 0,
                text: WORDS.to_owned(),
            };
            emit(emitter, Body::TextDelta(delta)).await?;
        }
    }
    pace.drained().await?;
    let end = MessageEnd {
        provider_state: turnwire_event::ProviderState::default(),
        provider_response_id: None,
        call_id,
        message_id,
        stop_reason: StopReason::EndTurn,
        usage: TokenUsage::default(),
        failure: None,
        tools: Vec::new(),
    };
    emitter.complete(end).map(drop).map_err(io::Error::other)
}

async fn emit(emitter: &dyn EventEmitter, body: Body) -> io::Result<Position> {
    let mut emission = Emission::new(Actor::ORCHESTRATOR, body);
    loop {
        match emitter.emit(emission) {
            Ok(at) => return Ok(at),
            Err(EmitError::Full(back)) => {
                emission = *back;
                emitter.ready().await;
            }
            Err(EmitError::Refused(refusal)) => return Err(io::Error::other(refusal)),
        }
    }
}
