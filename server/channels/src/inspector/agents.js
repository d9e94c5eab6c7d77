'use strict';
// Agents: their status and kept turns. Uses page.js, which runs first on the same page.

let agent = null;
let looked = {}; // what is shown of the agent, to leave it alone while it is the same

async function listAgents() {
  const of = channel;
  if (!of) return;
  const { agents } = await ask(`/v1/agents?channel=${encodeURIComponent(of)}`);
  if (of !== channel) return;
  entries($('agents'), agents.slice(0, MAX_LISTED).map((key) => ({
    name: key, title: key.split('/')[0], note: `@${key.split('/').pop()}`, current: key === agent, open: () => showAgent(key),
  })), 'none of this host');
}

function showAgent(key) {
  agent = key;
  looked = {};
  $('agent').hidden = !key;
  mark($('agents'), key);
  if (!key) return;
  $('agent-name').textContent = label(key, 400);
  for (const id of ['facts', 'letters', 'timers', 'state', 'settings', 'turn', 'turns']) $(id).replaceChildren();
  $('agent-error').textContent = '';
  $('kept').hidden = $('dead').hidden = $('timing').hidden = true;
  look();
}

/** Shows a part of an agent again if it changed, so that focus and selection stay. */
function part(of, value, show) {
  const now = json(value);
  if (looked[of] === now) return;
  looked[of] = now;
  show(now);
}

async function look() {
  const key = agent;
  const path = key.split('/').map(encodeURIComponent).join('/');
  try {
    const info = await ask(`/v1/agents/${path}`);
    if (key !== agent) return;
    const { status, version, checkpoint, lag, turns, failed, hopLimited, outbox, lastError } = info;
    const facts = { status, lag, checkpoint, turns, failed, 'hop limited': hopLimited, 'version of the state': version };
    if (outbox !== undefined) facts.outbox = outbox;
    part('facts', facts, () => {
      $('facts').replaceChildren(...Object.entries(facts).flatMap(([n, v]) => [make('dt', n), make('dd', v)]));
    });
    part('error', lastError, () => { $('agent-error').textContent = lastError ? cut(lastError.join(': ')) : ''; });
    part('state', info.state, (now) => { $('state').textContent = cut(now, 20000); });
    part('settings', info.settings, (now) => { $('settings').textContent = cut(now, 20000); });
    part('timers', info.timers, () => items('timing', 'timers', info.timers,
      (one) => `${one.name}: ${time(one.due)} UTC${one.cron ? `, ${one.cron}` : ''}`));
    part('dead', info.deadLetters, () => items('dead', 'letters', info.deadLetters,
      (one) => `${JSON.stringify(one.trigger)}: ${one.code}: ${one.error} (${one.attempts} attempts, ${time(one.at)} UTC)`));
    $('retry').disabled = $('drop').disabled = outbox === undefined || !allows('admin', channel);
    // A server without hosted agents has no outbox, and keeps no turns.
    if (outbox === undefined) return;
    const kept = await ask(`/v1/turns?agent=${encodeURIComponent(key)}`);
    if (key === agent) part('turns', kept.turns, () => showTurns(kept.turns));
  } catch (error) {
    if (key === agent) $('agent-error').textContent = error.message;
  }
}

function items(whole, list, all, shown) {
  $(whole).hidden = !all.length;
  $(list).replaceChildren(...all.slice(0, 200).map((one) => {
    const item = make('li');
    const said = make('div', cut(shown(one), 1000), 'said');
    item.append(said);
    return item;
  }));
}

function showTurns(all) {
  const chosen = $('turns').value;
  $('kept').hidden = !all.length;
  $('turns').replaceChildren(option('', `choose one of ${all.length}`),
    ...all.slice(-500).reverse().map((turn) => option(turn, label(turn, 100))));
  $('turns').value = all.includes(chosen) ? chosen : '';
}

async function showTurn(turn) {
  const key = agent;
  $('turn').replaceChildren();
  if (!turn) return;
  try {
    const did = await ask(`/v1/turns?agent=${encodeURIComponent(key)}&turn=${encodeURIComponent(turn)}`);
    if (key !== agent || $('turns').value !== turn) return;
    const ends = did.calls.map((call) => call.at - did.began);
    const long = Math.max(1, ...ends);
    const known = (n) => n ?? 'unknown';
    const facts = {
      began: `${time(did.began)} UTC`, calls: did.count, fuel: did.fuel,
      tokens: `${known(did.inputTokens)} in, ${known(did.outputTokens)} out`, money: known(did.money), sent: did.sent, timers: did.timers,
    };
    const about = make('dl');
    about.append(...Object.entries(facts).flatMap(([n, v]) => [make('dt', n), make('dd', v)]));
    const calls = make('ol');
    did.calls.forEach((call, at) => {
      const item = make('li');
      const head = make('div', undefined, 'meta');
      head.append(make('bdi', label(call.atom, 80), 'who'), make('span', `answer after ${Math.round(ends[at])} ms`));
      if (call.fuel) head.append(make('span', `${call.fuel} fuel`));
      if (call.inputTokens !== undefined) {
        head.append(make('span', `${known(call.inputTokens)} + ${known(call.outputTokens)} tokens`));
        head.append(make('span', `money ${known(call.money)}`));
      }
      const lane = make('div', undefined, 'lane');
      const bar = make('span');
      const start = at ? ends[at - 1] : 0;
      bar.style.marginInlineStart = `${(100 * Math.min(start, long)) / long}%`;
      bar.style.width = `${(100 * Math.max(0, ends[at] - start)) / long}%`;
      lane.append(bar);
      item.append(head, lane);
      if (call.error) item.append(make('div', cut(call.error, 2000), 'bad'));
      else text(item, call.value);
      calls.append(item);
    });
    $('turn').append(about, calls);
    if (did.error) $('turn').append(make('p', cut(did.error.join(': '), 2000), 'bad'));
  } catch (error) {
    $('turn').replaceChildren(make('p', error.message, 'bad'));
  }
}

async function letters(action) {
  try {
    await ask('/v1/dead-letters', { agent, action });
    refuse('');
  } catch (error) {
    refuse(error.message);
  }
  if (agent) await look();
}

$('turns').onchange = () => showTurn($('turns').value);
$('retry').onclick = () => letters('retry');
$('drop').onclick = () => { if (confirm('Discard all dead letters of this agent?')) letters('drop'); };
