'use strict';
// Everything that a program or a person wrote becomes text, never HTML. The policy of the page
// (Trusted Types) refuses the opposite.

const PROTOCOL = 1;
const PAGE = 100; // events of a page of the history
const MAX_ROWS = 1000; // rows of the log: older ones leave while it grows
const MAX_SHOWN = 2000; // characters of a text before it is cut
const MAX_LISTED = 500; // channels and agents of a list
const CREDIT = 200; // events that the server may be ahead
const LOOK_MS = 2500; // pause between looks at an agent

const $ = (id) => document.getElementById(id);
const make = (name, text, kind) => {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (kind) node.className = kind;
  return node;
};
const option = (value, label) => {
  const made = make('option', label);
  made.value = value;
  return made;
};
const json = (value) => JSON.stringify(value, null, 2) ?? '';
const cut = (text, most = MAX_SHOWN) => {
  text = String(text);
  return text.length > most ? `${text.slice(0, most)}…` : text;
};
/** A name within a line. Marks that turn the direction would reach beyond it: they become visible. */
const label = (text, most = 200) => cut(text, most)
  .replace(/[\u0000-\u001f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, '\ufffd');
const time = (ms) => new Date(ms).toISOString().replace('T', ' ').slice(0, 19);

let token = null;
let scopes = [];
let link = null; // the socket
let pause = 1000;
let channel = null;
let oldest = null; // the first event of the log that is shown
let newest = 0;
const drawn = new WeakMap(); // what lists show

// ---- Access

const keep = (value) => {
  token = value;
  if (value) sessionStorage.setItem('token', value);
  else sessionStorage.removeItem('token');
};

const allows = (action, name) => scopes.some((scope) => {
  if (scope === 'admin') return true;
  const at = scope.indexOf(':');
  const [what, of] = [scope.slice(0, at), scope.slice(at + 1)];
  if (what !== action && what !== 'admin') return false;
  return of.endsWith('*') ? name.startsWith(of.slice(0, -1)) : name === of;
});

const refuse = (message) => { $('error').textContent = message; };

async function ask(path, body) {
  const options = { headers: { Authorization: `Bearer ${token}` }, cache: 'no-store' };
  if (body) {
    options.method = 'POST';
    options.headers['Content-Type'] = 'application/json';
    options.body = JSON.stringify(body);
  }
  const response = await fetch(path, options);
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    throw new Error(answer.error ? `${answer.error.message} (${answer.error.code})` : `status ${response.status}`);
  }
  return answer;
}

function door(message) {
  keep(null);
  link?.close();
  link = null;
  // The next token may allow less.
  [channel, newest] = [null, 0];
  showAgent(null);
  for (const list of ['channels', 'agents', 'roster', 'log']) {
    $(list).replaceChildren();
    drawn.delete($(list));
  }
  $('desk').hidden = $('leave').hidden = true;
  $('door').hidden = false;
  $('status').textContent = 'not connected';
  refuse(message ?? '');
  $('token').focus();
}

async function begin() {
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  if (code) {
    // Out of the address before anything else: it is in no history then.
    history.replaceState(null, '', location.pathname);
    const options = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ code }) };
    const response = await fetch('/inspect/session', options);
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) return door(answer.error?.message ?? `status ${response.status}`);
    keep(answer.token);
  } else {
    token = sessionStorage.getItem('token');
  }
  token ? connect() : door();
}

// ---- Socket

function connect() {
  const socket = new WebSocket(location.origin.replace(/^http/, 'ws') + '/v1/socket');
  socket.binaryType = 'arraybuffer';
  const waiting = new Map();
  let last = 0;
  const to = {
    close: () => socket.close(),
    notice: (method, params) => socket.send(`${JSON.stringify({ method })}\n${JSON.stringify(params)}`),
    request: (method, params) => new Promise((done, failed) => {
      if (socket.readyState !== WebSocket.OPEN) return failed(new Error('the connection is lost'));
      last += 1;
      waiting.set(last, { done, failed });
      socket.send(`${JSON.stringify({ id: last, method })}\n${JSON.stringify(params)}`);
    }),
  };
  link = to;
  $('status').textContent = 'connecting';
  socket.onopen = async () => {
    try {
      const welcome = await to.request('hello', { protocol: PROTOCOL, token });
      pause = 1000;
      scopes = welcome.scopes;
      refuse('');
      $('door').hidden = true;
      $('desk').hidden = $('leave').hidden = false;
      $('status').textContent = `connected to ${location.host}`;
      const was = channel;
      await listChannels();
      if (was) await follow(was, true);
    } catch (error) {
      refuse(error.message);
    }
  };
  socket.onmessage = ({ data }) => {
    const [head, body] = parse(data);
    if (head.method) return heard(to, head.method, body);
    const asked = waiting.get(head.id);
    waiting.delete(head.id);
    if (!asked) return;
    head.error ? asked.failed(new Error(`${head.error.message} (${head.error.code})`)) : asked.done(body);
  };
  socket.onclose = ({ code, reason }) => {
    for (const { failed } of waiting.values()) failed(new Error(reason || 'the connection is lost'));
    if (link !== to) return;
    link = null;
    if (code === 4001 || code === 4005) return door(reason);
    $('status').textContent = `disconnected; again in ${Math.round(pause / 1000)} s`;
    setTimeout(() => { if (!link && token) connect(); }, pause);
    pause = Math.min(pause * 2, 30000);
  };
}

/** The head of a message and its content, without the bytes of attachments. */
function parse(data) {
  if (typeof data === 'string') {
    const end = data.indexOf('\n');
    const body = data.slice(end + 1);
    return [JSON.parse(data.slice(0, end)), body ? JSON.parse(body) : null];
  }
  const bytes = new Uint8Array(data);
  const end = bytes.indexOf(10);
  const text = (part) => new TextDecoder().decode(part);
  const head = JSON.parse(text(bytes.subarray(0, end)));
  return [head, JSON.parse(text(bytes.subarray(end + 1, bytes.length - (head.bytes ?? 0))))];
}

let subscription = 0;
let owed = 0;
let follows = true; // whether the log shows its end, and stays there

function heard(from, method, body) {
  if (body.subscription !== subscription || from !== link) return;
  if (method === 'event') {
    append(body);
    owed += 1;
    if (owed >= CREDIT / 2) {
      from.notice('credit', { subscription, events: owed });
      owed = 0;
    }
  } else if (method === 'roster') {
    showRoster(body.participants);
  } else if (method === 'ended') {
    refuse(`the log ended: ${body.error.message}`);
  }
}

// ---- Channels and log

async function listChannels() {
  const all = await link.request('channels', null);
  entries($('channels'), all.slice(0, MAX_LISTED).map(([name, head]) => ({
    name, note: `${head}`, current: name === channel, open: () => follow(name).catch((e) => refuse(e.message)),
  })), 'none yet');
  if (!channel && all.length) await follow(all[0][0]);
}

/** Fills a list with buttons, unless it has them: a click on one must not lose it. */
function entries(list, all, none) {
  const now = json(all);
  if (drawn.get(list) === now) return;
  drawn.set(list, now);
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.name : null;
  list.replaceChildren(...all.map(({ name, title, note, current, open }) => {
    const button = make('button');
    button.type = 'button';
    button.dataset.name = name;
    button.setAttribute('aria-current', current);
    button.append(make('bdi', label(title ?? name)), ' ', make('span', label(note), 'dim'));
    button.onclick = open;
    const item = make('li');
    item.append(button);
    return item;
  }));
  if (!all.length) list.append(make('li', none, 'dim'));
  if (focused !== null) [...list.querySelectorAll('button')].find((b) => b.dataset.name === focused)?.focus();
}

function mark(list, current) {
  drawn.delete(list);
  for (const one of list.querySelectorAll('button')) one.setAttribute('aria-current', one.dataset.name === current);
}

async function follow(name, again) {
  if (!again || !newest) {
    channel = name;
    $('log').replaceChildren();
    [oldest, newest] = [null, 0];
    showAgent(null);
    $('channel').textContent = label(name);
    mark($('channels'), name);
    const mayWrite = allows('write', name);
    $('box').hidden = !mayWrite;
    $('mute').hidden = mayWrite;
  }
  const before = subscription;
  if (before && !again) link.request('unsubscribe', { subscription: before }).catch(() => {});
  subscription += 1;
  owed = 0;
  const mine = subscription;
  if (!newest) await page(null);
  if (mine !== subscription) return;
  await link.request('subscribe', { subscription, channel: name, after: newest, ephemeral: true, roster: true, credit: CREDIT });
  await listAgents();
}

/** Shows events before a number, or the last ones. */
async function page(before) {
  const of = channel;
  const found = await link.request('history', { channel: of, at: before, limit: PAGE });
  if (of !== channel || (before && before !== oldest)) return;
  const rows = found.events.map((sent) => row(sent)).reverse();
  const log = $('log');
  const height = log.scrollHeight;
  // Readers of screens announce what is new, not what was there.
  log.ariaBusy = 'true';
  log.prepend(...rows);
  requestAnimationFrame(() => { log.ariaBusy = 'false'; });
  if (found.events.length) {
    newest = Math.max(newest, found.events[0].event.seq);
    oldest = found.events[found.events.length - 1].event.seq;
  }
  $('earlier').hidden = !found.hasMore || log.childElementCount >= MAX_ROWS * 5;
  follows = !before;
  log.scrollTop = before ? log.scrollTop + log.scrollHeight - height : log.scrollHeight;
}

function append(sent) {
  const log = $('log');
  if (sent.event.seq) {
    if (sent.event.seq <= newest) return;
    newest = sent.event.seq;
    oldest ??= newest;
  }
  log.append(row(sent));
  if (!follows) return;
  while (log.childElementCount > MAX_ROWS) {
    log.firstElementChild.remove();
    $('earlier').hidden = false;
  }
  const first = [...log.children].find((item) => item.dataset.seq);
  if (first) oldest = Number(first.dataset.seq);
  log.scrollTop = log.scrollHeight;
}

function row({ event, attachments }) {
  const { eventId, seq, kind, ts, sender, hops, type, ...rest } = event;
  const item = make('li');
  if (seq) item.dataset.seq = seq;
  const meta = make('div', undefined, 'meta');
  meta.append(make('span', seq ? `#${seq}` : 'not in the log'), make('bdi', label(nameOf(sender)), 'who'));
  if (type !== 'message') meta.append(make('span', type));
  const at = make('time', time(ts));
  at.dateTime = new Date(ts).toISOString();
  meta.append(at);
  for (const one of attachments ?? []) {
    meta.append(make('bdi', label(`${one.name ?? one.id} (${one.mimeType}, ${one.size} bytes)`)));
  }
  item.append(meta);
  if (type === 'message') text(item, rest.content);
  else if (Object.keys(rest).length) text(item, json(rest));
  return item;
}

const nameOf = (sender) => (sender.handle ? `@${sender.handle}` : sender.name ?? sender.id);

/** Adds a text; a long one is cut until somebody asks for all of it. */
function text(to, all) {
  const said = make('div', cut(all), 'said');
  said.dir = 'auto';
  to.append(said);
  if (all.length <= MAX_SHOWN) return;
  const more = make('button', `all ${all.length} characters`);
  more.type = 'button';
  more.onclick = () => {
    said.textContent = all;
    said.tabIndex = 0;
    said.focus();
    more.remove();
  };
  to.append(more);
}

function showRoster(all) {
  $('roster').replaceChildren(...all.map((who) => {
    const item = make('li');
    item.append(make('bdi', label(`@${who.handle}`)), ' ', make('bdi', label(who.type, 40), 'dim'));
    return item;
  }));
  if (!all.length) $('roster').append(make('li', 'none', 'dim'));
  const to = $('to');
  const chosen = to.value;
  to.replaceChildren(option('', 'everybody'), ...all.map((who) => option(who.id, label(`@${who.handle}`, 80))));
  to.value = all.some((who) => who.id === chosen) ? chosen : '';
  listAgents().catch((error) => refuse(error.message));
}

let unsent = null; // a message whose answer did not come, with its key

async function send() {
  const content = $('text').value;
  if (!content.trim() || !link) return;
  const at = $('to').value ? [$('to').value] : undefined;
  const body = { type: 'message', content, ...(at && { at }) };
  const same = unsent && unsent.channel === channel && json(unsent.body) === json(body);
  unsent = same ? unsent : { channel, body, key: crypto.getRandomValues(new Uint32Array(4)).join('-') };
  try {
    await link.request('publish', unsent);
    unsent = null;
    if ($('text').value === content) $('text').value = '';
    refuse('');
  } catch (error) {
    refuse(`not sent: ${error.message}`);
  }
}

// ---- Controls

$('door').onsubmit = (event) => {
  event.preventDefault();
  keep($('token').value.trim());
  $('token').value = '';
  refuse('');
  connect();
};
$('leave').onclick = () => door();
$('box').onsubmit = (event) => { event.preventDefault(); send(); };
$('log').onscroll = ({ target: log }) => { follows = log.scrollHeight - log.scrollTop - log.clientHeight < 40; };
new ResizeObserver(() => { if (follows) $('log').scrollTop = $('log').scrollHeight; }).observe($('log'));
$('earlier').onclick = () => page(oldest).catch((error) => refuse(error.message));
$('show-keys').onclick = () => $('keys').showModal();

const KEYS = {
  '?': () => $('keys').showModal(),
  c: () => $('channels').querySelector('button')?.focus(),
  a: () => $('agents').querySelector('button')?.focus(),
  l: () => $('log').focus(),
  e: () => { if (!$('earlier').hidden) $('earlier').click(); },
  m: () => $('text').focus(),
};

document.addEventListener('keydown', (event) => {
  const at = event.target;
  if (at === $('text') && event.key === 'Enter' && (event.ctrlKey || event.metaKey)) return send();
  const isField = at.matches('input, textarea, select');
  if (event.key === 'Escape' && isField) return at.blur();
  if (isField || event.ctrlKey || event.metaKey || event.altKey || $('keys').open) return;
  const does = KEYS[event.key];
  if (does) {
    event.preventDefault();
    does();
  }
});

setInterval(() => {
  if (document.hidden || !link || $('desk').hidden) return;
  if (agent) look();
  listChannels().catch(() => {});
}, LOOK_MS);

// After the scripts.
document.addEventListener('DOMContentLoaded', () => begin().catch((error) => door(error.message)));
