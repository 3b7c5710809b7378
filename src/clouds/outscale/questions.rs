//! Many questions for single VMs, asked with few calls: while one call is under way, those that come gather for the next.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::oapi::wire::{ReadVms, Vm, VmFilters};
use super::oapi::{Client, Error};

/// Most keys of one call.
const AT_ONCE: usize = 100;

/// What VMs are asked for by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// VM IDs.
    Id,
    /// Client tokens.
    Token,
}

/// The desk at which questions are gathered.
pub(super) struct Questions {
    by: By,
    waiting: Mutex<Waiting>,
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Waiting {
    last: u64,
    askers: BTreeMap<u64, Asker>,
}

struct Asker {
    keys: Vec<String>,
    answer: oneshot::Sender<Result<Vec<Vm>, Error>>,
}

impl Questions {
    pub(super) fn new(by: By) -> Self {
        Self { by, waiting: Mutex::default(), turn: tokio::sync::Mutex::new(()) }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The VMs of these keys, terminated ones included. The call for them begins after the question was asked.
    pub(super) async fn ask(&self, client: &Client, keys: Vec<String>) -> Result<Vec<Vm>, Error> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        loop {
            let (answer, mut answered) = oneshot::channel();
            let number = {
                let mut waiting = self.waiting();
                waiting.last += 1;
                let number = waiting.last;
                waiting.askers.insert(number, Asker { keys: keys.clone(), answer });
                number
            };
            // Who is dropped here is taken along once more, which costs a key and nothing else.
            tokio::select! {
                biased;
                answer = &mut answered => match answer {
                    Ok(answer) => return answer,
                    // Who asked for us was dropped: ask again.
                    Err(_) => continue,
                },
                _turn = self.turn.lock() => {
                    match answered.try_recv() {
                        Ok(answer) => return answer,
                        Err(oneshot::error::TryRecvError::Closed) => continue,
                        Err(oneshot::error::TryRecvError::Empty) => {}
                    }
                    self.serve(client, number).await;
                }
            }
            if let Ok(answer) = answered.try_recv() {
                return answer;
            }
        }
    }

    /// Asks for one asker, and for as many others as fit in.
    async fn serve(&self, client: &Client, first: u64) {
        let askers = {
            let mut waiting = self.waiting();
            let mut askers: Vec<Asker> = waiting.askers.remove(&first).into_iter().collect();
            let mut room = AT_ONCE.saturating_sub(askers.iter().map(|asker| asker.keys.len()).sum());
            let others: Vec<u64> = waiting.askers.keys().copied().collect();
            for number in others {
                let fits = waiting.askers.get(&number).is_some_and(|asker| asker.keys.len() <= room);
                if let Some(asker) = fits.then(|| waiting.askers.remove(&number)).flatten() {
                    room -= asker.keys.len();
                    askers.push(asker);
                }
            }
            askers.retain(|asker| !asker.answer.is_closed());
            askers
        };
        let mut keys: Vec<String> = askers.iter().flat_map(|asker| asker.keys.iter().cloned()).collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            return;
        }
        let filters = match self.by {
            By::Id => VmFilters { vm_ids: keys, ..VmFilters::default() },
            By::Token => VmFilters { client_tokens: keys, ..VmFilters::default() },
        };
        let found = client.all(&ReadVms { filters: Some(filters), ..ReadVms::default() }).await;
        for asker in askers {
            let own = found.clone().map(|vms| {
                let is_own = |vm: &Vm| match self.by {
                    By::Id => asker.keys.contains(&vm.vm_id),
                    By::Token => vm.client_token.as_ref().is_some_and(|token| asker.keys.contains(token)),
                };
                vms.into_iter().filter(is_own).collect()
            });
            // Whoever has gone away does not need it.
            drop(asker.answer.send(own));
        }
    }
}
