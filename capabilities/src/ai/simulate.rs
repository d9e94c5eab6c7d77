//! Simulations of budgets: random trees of accounts whose requests retry, wait, break, are
//! cancelled and report arbitrary usage, in an order that a seed determines.
//!
//! [`check`] runs the tree of a seed and compares the payments of its accounts with an
//! oracle's. A [`Fault`] injects an error into the provider; a test shows that each is found.

use super::{
    AiCode, AiError, AiProvider, Cost, Message, MeteredAi, Payer, Request, StopReason, StreamEvent,
    StreamHandle, StreamSink, TextRequest, TokenEstimate, Usage,
};
use crate::error::{BoxFuture, ready};
use crate::script::lock;
use a99_core::fuel::Fuel;
use a99_run::account::{Account, AccountLimits, Money};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

/// Injected error.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Only the first request of an answer is paid.
    UnpaidRetry,
    /// The reservation is released before the request is sent.
    NothingKept,
    /// The request lacks the answer's limit.
    NoCap,
    /// Requests are paid at the price of another model.
    OtherPrice,
    /// An embedding cancelled after it was sent is refunded.
    UnpaidEmbedding,
}

impl Fault {
    /// All faults.
    pub const ALL: &[Fault] = &[
        Fault::UnpaidRetry,
        Fault::NothingKept,
        Fault::NoCap,
        Fault::OtherPrice,
        Fault::UnpaidEmbedding,
    ];
}

/// Pseudo-random numbers of a seed (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// A request in flight.
struct Sent {
    /// The requesting account.
    node: usize,
    prompt: TokenEstimate,
    /// Token limit of the answer in the request.
    most: u64,
    price: u64,
    /// True if the caller cancels before the end.
    cancels: bool,
    said: u64,
    end: Arc<Mutex<Option<End>>>,
    sink: Arc<StreamSink>,
    waiter: Arc<Mutex<Option<Waker>>>,
}

/// Texts in flight to be embedded.
struct Embedding {
    node: usize,
    prompt: TokenEstimate,
    price: u64,
    reply: Arc<Mutex<Option<Reply>>>,
    waiter: Arc<Mutex<Option<Waker>>>,
}

/// Outcome of an embedding.
#[derive(Copy, Clone)]
enum Reply {
    /// The service reports this many tokens, or nothing.
    Vectors(Option<u64>),
    /// The caller cancelled.
    Left,
}

/// How a request ended.
#[derive(Clone)]
enum End {
    Whole,
    Failed(AiError),
}

/// Amounts that requests owe, by account: tokens, and money in millionths.
type Owed = Vec<(u64, u64)>;

/// State shared by all tasks.
struct World {
    sent: Mutex<Vec<Sent>>,
    embeddings: Mutex<Vec<Embedding>>,
    /// Largest error of the estimates, in tokens and money.
    error: Mutex<(u64, u64)>,
    fault: Option<Fault>,
    tasks: Mutex<Vec<Task>>,
}

/// A future that is polled when it was woken.
struct Task {
    future: BoxFuture<'static, ()>,
    woken: Arc<Flag>,
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl World {
    fn spawn(&self, future: BoxFuture<'static, ()>) {
        let woken = Arc::new(Flag(AtomicBool::new(true)));
        lock(&self.tasks).push(Task { future, woken });
    }
}

/// A model with up to three attempts for an answer.
struct Model {
    world: Arc<World>,
    node: usize,
    price: u64,
    tries: usize,
    cancels: bool,
}

fn cost(price: u64, usage: Usage) -> Cost {
    Cost {
        money: Money::from_micro(usage.total().saturating_mul(price)),
        fuel: Fuel::ZERO,
    }
}

impl AiProvider for Model {
    fn list_roles(&self) -> BoxFuture<'_, Result<BTreeMap<String, String>, AiError>> {
        ready(Ok(BTreeMap::new()))
    }

    fn stream_text(&self, _: TextRequest) -> StreamHandle {
        StreamHandle::failed("unpaid", AiError::new(AiCode::Invalid, "it is not paid"))
    }

    fn stream_paid(&self, request: &TextRequest, payer: &Payer) -> Option<StreamHandle> {
        let (sink, handle) = StreamHandle::new("simulated");
        let sink = Arc::new(sink);
        let (world, payer) = (Arc::clone(&self.world), payer.clone());
        let (node, price, tries) = (self.node, self.price, self.tries);
        let cancels = self.cancels;
        let prompt = TokenEstimate::of_request(request);
        let wanted = request.max_tokens;
        let closed = Arc::clone(&sink);
        let shared = Arc::clone(&world);
        let answer = async move {
            for at in 0..tries {
                let mut most = wanted.map_or(4096, u64::from);
                if world.fault != Some(Fault::UnpaidRetry) || at == 0 {
                    let paid_price = match world.fault {
                        Some(Fault::OtherPrice) => 0,
                        _ => price,
                    };
                    let reserving = payer.reserve(Request {
                        model: None,
                        prompt,
                        max_tokens: wanted,
                        effort: None,
                        writes_cache: false,
                        price: Arc::new(move |_, usage| Some(cost(paid_price, usage))),
                    });
                    let paid = match reserving.await {
                        Ok(paid) => paid,
                        Err(error) => return sink.fail(error),
                    };
                    if world.fault != Some(Fault::NoCap) {
                        most = paid.max_tokens().map_or(most, u64::from);
                    }
                    match world.fault {
                        Some(Fault::NothingKept) => drop(paid),
                        _ if !sink.pay(paid) => return,
                        _ => {}
                    }
                }
                let end = Arc::new(Mutex::new(None));
                let waiter = Arc::new(Mutex::new(None));
                lock(&world.sent).push(Sent {
                    node,
                    prompt,
                    most,
                    price,
                    cancels,
                    said: 0,
                    end: Arc::clone(&end),
                    sink: Arc::clone(&sink),
                    waiter: Arc::clone(&waiter),
                });
                let how = std::future::poll_fn(|cx| match lock(&end).clone() {
                    Some(how) => Poll::Ready(how),
                    None => {
                        *lock(&waiter) = Some(cx.waker().clone());
                        Poll::Pending
                    }
                })
                .await;
                match how {
                    End::Whole => return sink.finish(StopReason::EndTurn),
                    End::Failed(error) if at + 1 == tries || sink.has_begun() => {
                        return sink.fail(error);
                    }
                    End::Failed(error) => sink.settle(&error),
                }
            }
        };
        // Ends when the answer has no reader.
        shared.spawn(Box::pin(async move {
            let mut answer = Box::pin(answer);
            let mut closed = Box::pin(async move { closed.closed().await });
            std::future::poll_fn(|cx| match closed.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => answer.as_mut().poll(cx),
            })
            .await;
        }));
        Some(handle)
    }
}

/// A tree of accounts.
struct Tree {
    accounts: Vec<Account>,
    limits: Vec<AccountLimits>,
    parents: Vec<Option<usize>>,
}

impl Tree {
    fn random(numbers: &mut Numbers) -> Tree {
        let mut tree = Tree {
            accounts: Vec::new(),
            limits: Vec::new(),
            parents: Vec::new(),
        };
        for at in 0..=numbers.below(4) {
            let limits = AccountLimits {
                tokens: (at == 0 || numbers.one_in(2)).then(|| 50 + numbers.next() % 12_000),
                money: numbers
                    .one_in(2)
                    .then(|| Money::from_micro(50 + numbers.next() % 200_000)),
                ..AccountLimits::default()
            };
            let parent = (at > 0).then(|| numbers.below(at));
            let account = match parent {
                Some(parent) => tree.accounts[parent].child("a", limits),
                None => Account::new("a", limits),
            };
            tree.accounts.push(account);
            tree.limits.push(limits);
            tree.parents.push(parent);
        }
        tree
    }

    /// Adds a request's debt to its account and those above.
    fn owe(&self, owed: &mut Owed, node: usize, tokens: u64, price: u64) {
        let mut at = Some(node);
        while let Some(node) = at {
            owed[node].0 += tokens;
            owed[node].1 += tokens.saturating_mul(price);
            at = self.parents[node];
        }
    }
}

/// Advances a random answer: adds words, or ends it. Returns its debt at the end.
fn go_on(sent: &mut Sent, numbers: &mut Numbers, cancelled: bool) -> Option<u64> {
    let room = sent.most - sent.said;
    if !cancelled && room > 0 && !numbers.one_in(4) {
        let words = 1 + numbers.next() % room.min(400);
        sent.said += words;
        sent.sink
            .send(StreamEvent::Text("word ".repeat(words as usize)));
        return None;
    }
    // Tokens sent and received, as every tokenizer counts them: one for each word.
    let sent_tokens = sent.prompt.likely;
    if cancelled {
        return Some(sent_tokens + sent.said);
    }
    let (end, owed) = match numbers.below(8) {
        0 => (AiCode::CutOff, sent_tokens + sent.said),
        1 => (AiCode::Unavailable, sent_tokens + sent.said),
        // A caller that cancels before the refusal arrives pays for the prompt.
        2 if sent.said == 0 && !sent.cancels => (AiCode::RateLimited, 0),
        3 => {
            // A report below the received tokens.
            sent.sink.send(StreamEvent::Usage(Usage {
                prompt_tokens: 0,
                completion_tokens: 0,
                cached_tokens: 7,
                ..Usage::default()
            }));
            (AiCode::Invalid, sent_tokens + sent.said)
        }
        4 => (AiCode::Invalid, sent_tokens + sent.said),
        _ => {
            // A correct report of a tokenizer between the estimate and the upper bound.
            let prompt =
                sent.prompt.likely + numbers.next() % (sent.prompt.most - sent.prompt.likely + 1);
            sent.sink.send(StreamEvent::Usage(Usage {
                prompt_tokens: prompt,
                completion_tokens: sent.said,
                ..Usage::default()
            }));
            (AiCode::Invalid, prompt + sent.said)
        }
    };
    let how = match end {
        // A complete answer without text or report would count as the whole limit.
        AiCode::Invalid if sent.said == 0 && owed == sent_tokens => {
            End::Failed(AiError::new(AiCode::Malformed, "no"))
        }
        AiCode::Invalid => End::Whole,
        code => End::Failed(AiError::new(code, "no")),
    };
    *lock(&sent.end) = Some(how);
    if let Some(waker) = lock(&sent.waiter).take() {
        waker.wake();
    }
    Some(owed)
}

/// Answers an embedding; returns its debt.
fn embed(of: &Embedding, numbers: &mut Numbers) -> u64 {
    let prompt = of.prompt;
    let truth = prompt.likely + numbers.next() % (prompt.most - prompt.likely + 1);
    let (reply, owed) = match numbers.below(8) {
        0 => (Reply::Left, prompt.likely),
        1 => (Reply::Vectors(None), prompt.likely),
        2 => (Reply::Vectors(Some(0)), prompt.likely),
        3 => (Reply::Vectors(Some(u64::MAX)), prompt.likely),
        _ => (Reply::Vectors(Some(truth)), truth),
    };
    *lock(&of.reply) = Some(reply);
    if let Some(waker) = lock(&of.waiter).take() {
        waker.wake();
    }
    owed
}

impl World {
    /// Embeds a batch of texts for an account.
    fn spawn_embedding(self: &Arc<Self>, node: usize, account: Account, texts: &str, price: u64) {
        let (world, prompt) = (Arc::clone(self), TokenEstimate::of_text(texts));
        self.spawn(Box::pin(async move {
            let reserving = Payer::new(account);
            let reserving = reserving.reserve_prompt(Request {
                model: None,
                prompt,
                max_tokens: None,
                effort: None,
                writes_cache: false,
                price: Arc::new(move |_, usage| Some(cost(price, usage))),
            });
            let Ok(mut paid) = reserving.await else {
                return;
            };
            if world.fault != Some(Fault::UnpaidEmbedding) {
                paid.sent();
            }
            let (reply, waiter) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
            lock(&world.embeddings).push(Embedding {
                node,
                prompt,
                price,
                reply: Arc::clone(&reply),
                waiter: Arc::clone(&waiter),
            });
            let reply = std::future::poll_fn(|cx| match *lock(&reply) {
                Some(reply) => Poll::Ready(reply),
                None => {
                    *lock(&waiter) = Some(cx.waker().clone());
                    Poll::Pending
                }
            });
            match reply.await {
                Reply::Vectors(reported) => drop(paid.settle_prompt(reported)),
                Reply::Left => drop(paid),
            }
        }));
    }

    /// Records the possible error of an estimate.
    fn may_err(&self, prompt: TokenEstimate, price: u64) {
        let error = prompt.most - prompt.likely;
        let mut largest = lock(&self.error);
        largest.0 = largest.0.max(error);
        largest.1 = largest.1.max(error.saturating_mul(price));
    }
}

/// A conversation with tools: each round repeats the model's messages and a tool's result; the
/// tool may be an agent with its own models.
async fn tool_loop(
    models: MeteredAi,
    mut request: TextRequest,
    rounds: usize,
    tool: Option<MeteredAi>,
) {
    for _ in 0..rounds {
        let stream = models.open(request.clone()).await;
        let Ok(answer) = stream.done().await else {
            return;
        };
        let said: String = answer.text.chars().take(200).collect();
        request.messages.push(Message::assistant(said));
        request.messages.push(Message::user("it gave 7"));
        if let Some(tool) = &tool {
            let _ = tool.open(TextRequest::new("word word")).await.done().await;
        }
    }
}

/// Simulates the tree of a seed.
///
/// # Errors
/// The payments of the accounts differ from their debt.
pub fn check(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let mut numbers = Numbers(seed);
    let tree = Tree::random(&mut numbers);
    let world = Arc::new(World {
        sent: Mutex::default(),
        embeddings: Mutex::default(),
        error: Mutex::default(),
        fault,
        tasks: Mutex::default(),
    });
    let calls = 1 + numbers.below(10);
    for _ in 0..calls {
        let model = |numbers: &mut Numbers, cancels: bool| {
            let node = numbers.below(tree.accounts.len());
            let model = Model {
                world: Arc::clone(&world),
                node,
                price: [0, 1, 25][numbers.below(3)],
                tries: 1 + numbers.below(3),
                cancels,
            };
            MeteredAi::new(Arc::new(model), tree.accounts[node].clone())
        };
        let text = ["word ", "слово ", "{\"a\":1}", "語"][numbers.below(4)];
        if numbers.one_in(5) {
            let node = numbers.below(tree.accounts.len());
            let texts = text.repeat(1 + numbers.below(200));
            let price = [0, 1, 25][numbers.below(3)];
            world.spawn_embedding(node, tree.accounts[node].clone(), &texts, price);
            continue;
        }
        let cancels = numbers.one_in(8);
        let metered = model(&mut numbers, cancels);
        let request = TextRequest {
            max_tokens: numbers.one_in(2).then(|| 1 + numbers.below(5_000) as u32),
            ..TextRequest::new(text.repeat(1 + numbers.below(60)))
        };
        let rounds = if numbers.one_in(4) {
            1 + numbers.below(4)
        } else {
            1
        };
        let tool = (rounds > 1 && numbers.one_in(2)).then(|| model(&mut numbers, false));
        world.spawn(Box::pin(async move {
            if cancels {
                // After the first event, or the end.
                let _ = metered.open(request).await.next().await;
                return;
            }
            tool_loop(metered, request, rounds, tool).await;
        }));
    }
    let mut owed: Owed = vec![(0, 0); tree.accounts.len()];
    loop {
        // A woken task, or an answer in progress.
        let ready: Vec<usize> = {
            let tasks = lock(&world.tasks);
            let woken = |at: &usize| tasks[*at].woken.0.load(Ordering::Relaxed);
            (0..tasks.len()).filter(woken).collect()
        };
        let answers = lock(&world.sent).len();
        let open = answers + lock(&world.embeddings).len();
        if ready.is_empty() && open == 0 {
            break;
        }
        let at = numbers.below(ready.len() + open);
        if let Some(at) = ready.get(at) {
            let mut task = lock(&world.tasks).swap_remove(*at);
            task.woken.0.store(false, Ordering::Relaxed);
            let waker = Waker::from(Arc::clone(&task.woken));
            if task
                .future
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
            {
                lock(&world.tasks).push(task);
            }
            continue;
        }
        let at = at - ready.len();
        if at >= answers {
            let of = lock(&world.embeddings).swap_remove(at - answers);
            let tokens = embed(&of, &mut numbers);
            tree.owe(&mut owed, of.node, tokens, of.price);
            world.may_err(of.prompt, of.price);
            continue;
        }
        let mut sent = lock(&world.sent).swap_remove(at);
        let cancelled = sent.sink.is_closed();
        match go_on(&mut sent, &mut numbers, cancelled) {
            Some(tokens) => {
                tree.owe(&mut owed, sent.node, tokens, sent.price);
                world.may_err(sent.prompt, sent.price);
            }
            None => lock(&world.sent).push(sent),
        }
    }
    let waiting = lock(&world.tasks).len();
    if waiting > 0 {
        return Err(format!("{waiting} tasks wait for nothing"));
    }
    let error = *lock(&world.error);
    for (at, account) in tree.accounts.iter().enumerate() {
        let usage = account.usage();
        let tokens = usage.spent.tokens + usage.overdrawn.tokens;
        let money = usage.spent.money.micro() + usage.overdrawn.money.micro();
        if (tokens, money) != owed[at] {
            return Err(format!(
                "account {at} paid {tokens} and {money}, and owes {:?}",
                owed[at]
            ));
        }
        let limits = tree.limits[at];
        let most = limits
            .tokens
            .map_or(u64::MAX, |most| most.saturating_add(error.0));
        let dearest = limits
            .money
            .map_or(u64::MAX, |most| most.micro().saturating_add(error.1));
        if owed[at].0 > most || owed[at].1 > dearest {
            return Err(format!(
                "account {at} of {limits:?} spent {:?}, error {error:?}",
                owed[at]
            ));
        }
        let left = account.left();
        let kept = limits
            .tokens
            .is_some_and(|most| left.tokens > most.saturating_sub(usage.spent.tokens));
        if kept {
            return Err(format!("account {at} has {left:?} left of {limits:?}"));
        }
    }
    let root = &tree.accounts[0];
    let (left, limit) = (
        root.left().tokens,
        tree.limits[0].tokens.unwrap_or(u64::MAX),
    );
    match left == limit.saturating_sub(root.usage().spent.tokens) {
        true => Ok(()),
        false => Err(format!(
            "{left} tokens are left of {limit}, something is kept for ever"
        )),
    }
}

#[cfg(test)]
mod tests;
