// Written by gen.mjs from the engine's atoms.

import type { Atom } from './atoms.js'

/** The atoms of the language with the types of their inputs and results. */
export type CoreAtoms = {
  /** Fails with a message. */
  Error: Atom<{ args?: any[] | null }, any>
  /** Calls a method of a participant of the channel and waits for its answer. */
  agentCallMethod: Atom<{ to: string; method: string; args?: Record<string, any> | null; timeoutMs?: number | null }, any>
  /** Removes a timer of the agent, if there is one of the name. */
  agentCancelTimer: Atom<{ name: string }, any>
  /** Marks a message of the agent as failed. */
  agentFail: Atom<{ id: string; error: string; code?: string | null }, any>
  /** The agent's identity: {agent, channel, handle, id}. */
  agentIdentity: Atom<Record<string, any>, any>
  /** Invites an agent to the channel, or changes its configuration. Returns its identity. */
  agentInvite: Atom<{ agent: string; handle?: string | null; config?: Record<string, any> | null }, any>
  /** Sends a part of the answer to a method call at once; the result of the turn is the last part. */
  agentMethodResult: Atom<{ callId: string; content?: any; progress?: number | null }, any>
  /** Publishes an event of the agent on its channel when the turn ends. Returns its identity. */
  agentPublish: Atom<{ type: string; payload?: any; persist?: boolean | null }, any>
  /** Removes an agent from the channel. Returns whether it was there. */
  agentRemove: Atom<{ agent: string; handle?: string | null }, any>
  /** The participants of the agent's channel: {id, handle, name, type, methods, agent, metadata}. */
  agentRoster: Atom<Record<string, any>, any>
  /** Runs another agent and returns its result. */
  agentRun: Atom<{ agentId: string; input: any }, any>
  /** Sends a message to the agent's channel when the turn ends. Returns its identity. */
  agentSend: Atom<{ content: string; replyTo?: string | null; at?: string | string[] | null; contentType?: string | null; metadata?: Record<string, any> | null; partial?: boolean | null }, any>
  /** Changes the settings of the agent; the change is saved when the turn ends. */
  agentSetSettings: Atom<{ settings: Record<string, any> }, any>
  /** Changes the state of the agent; the change is saved when the turn ends. */
  agentSetState: Atom<{ state: Record<string, any>; replace?: boolean | null }, any>
  /** Sets or replaces a timer of the agent, which is due once or repeatedly: one of `at`, `after` and `cron` sets the time. */
  agentSetTimer: Atom<{ name: string; at?: number | null; after?: number | null; cron?: string | null; zone?: string | null; payload?: any }, any>
  /** The settings of the agent. */
  agentSettings: Atom<Record<string, any>, any>
  /** The state of the current agent, with the changes of this turn. */
  agentState: Atom<Record<string, any>, any>
  /** Runs SQL statements without parameters on the agent's tables. */
  agentStorageExec: Atom<{ sql: string }, any>
  /** The first row of a query on the agent's tables, as an object. */
  agentStorageGet: Atom<{ sql: string; params?: any[] | null }, any>
  /** All rows of a query on the agent's tables, as objects. */
  agentStorageQuery: Atom<{ sql: string; params?: any[] | null }, any>
  /** Runs a statement that changes the agent's tables. Returns {changes, lastInsertRowId}. */
  agentStorageRun: Atom<{ sql: string; params?: any[] | null }, any>
  /** Adds to a message that the agent sent, or ends it. */
  agentUpdate: Atom<{ id: string; content?: string | null; contentType?: string | null; complete?: boolean | null }, any>
  /** Whether both are truthy. */
  and: Atom<{ a: any; b: any }, any>
  /** Ends the innermost `forEach` or `while`. */
  break: Atom<Record<string, any>, any>
  /** Caches the result of steps in the store, by default for a day (`ttlMs`). */
  cache: Atom<{ key?: string | null; steps: any[]; ttlMs?: number | null }, any>
  /** Makes several calls at once and returns a list of their answers in the order of the calls, each `{value}` or `{error}`. */
  callAll: Atom<{ calls?: any[] | null; items?: any[] | null; as?: string | null; call?: Record<string, any> | null; limit?: number | null }, any>
  /** Calls a helper of the program by name. */
  callLocal: Atom<{ name: string; args: any[] }, any>
  /** Deletes expired stored programs; returns their number. */
  clearExpiredProcedures: Atom<Record<string, any>, any>
  /** Fails with a message. */
  consoleError: Atom<{ message: any }, any>
  /** Records a message in the trace. */
  consoleLog: Atom<{ message: any }, any>
  /** Adds a message to the warnings. */
  consoleWarn: Atom<{ message: any }, any>
  /** Sets a variable that cannot be set again. */
  constSet: Atom<{ key: string; value: any }, any>
  /** Ends this turn of the innermost `forEach` or `while`. */
  continue: Atom<Record<string, any>, any>
  /** Clicks an element. */
  domClick: Atom<{ selector: string }, any>
  /** Sets the value of a form element. */
  domInput: Atom<{ selector: string; value: any }, any>
  /** The text of an element. */
  domText: Atom<{ selector: string }, any>
  /** The value of a form element. */
  domValue: Atom<{ selector: string }, any>
  /** Whether a == b, with coercion. */
  eq: Atom<{ a: any; b: any }, any>
  /** Keeps the items for which the condition is truthy. */
  filter: Atom<{ items: any[]; as: string; condition: any }, any>
  /** Returns the first item for which the condition is truthy, or null. */
  find: Atom<{ items: any[]; as: string; condition: any }, any>
  /** Runs steps for each item; variables that they set persist, as in `while`. */
  forEach: Atom<{ items: any[]; as: string; index?: string | null; steps: any[] }, any>
  /** An object with a list of items for each value of a member. */
  groupBy: Atom<{ items: any[]; by: string }, any>
  /** Whether a > b. */
  gt: Atom<{ a: any; b: any }, any>
  /** A hexadecimal digest of a text or value: SHA-1, SHA-256 (default), SHA-384 or SHA-512. */
  hash: Atom<{ value: any; algorithm?: string | null; raw?: boolean | null }, any>
  /** Fetches a URL through the host. */
  httpFetch: Atom<{ url: string; method?: string | null; headers?: Record<string, any> | null; body?: any; responseType?: string | null }, any>
  /** Runs `then` when the condition is truthy, else `else`. */
  if: Atom<{ condition: any; vars?: Record<string, any> | null; then: any[]; else?: any[] | null }, any>
  /** Joins the items of a list to text. */
  join: Atom<{ list: string[]; sep: string }, any>
  /** Parses JSON text. */
  jsonParse: Atom<{ str: string }, any>
  /** Writes a value as JSON text. */
  jsonStringify: Atom<{ value: any }, any>
  /** The names of an object's members. */
  keys: Atom<{ obj: Record<string, any> }, any>
  /** The length of a list or text, 0 for anything else. */
  len: Atom<{ list: any }, any>
  /** One answer of a chat model, with its tool calls: `{text, toolCalls: [{id, name, input}], stopReason, message, usage: {inputTokens, outputTokens}}`; append `message` to `messages`. */
  llmChat: Atom<{ prompt?: string | null; messages?: any[] | null; tools?: any[] | null; system?: string | null; toolChoice?: any; responseFormat?: any; model?: string | null; role?: string | null; maxTokens?: number | null; temperature?: number | null; seed?: number | null; stop?: any; topP?: number | null; effort?: string | null; repair?: boolean | null }, any>
  /** Completes a prompt with the host's language model. */
  llmPredict: Atom<{ prompt: string; options?: any }, any>
  /** Asks a chat model, with tools and structured output. */
  llmPredictBattery: Atom<{ system?: string | null; user: any; tools?: any[] | null; responseFormat?: any }, any>
  /** Asks a chat model, calls the tools that it requests, returns their results to it, and repeats until it answers: `{text, rounds, stopReason, messages, usage, calls}`. */
  llmToolLoop: Atom<{ prompt?: string | null; messages?: any[] | null; tools: any[]; limit?: number | null; maxRounds?: number | null; budget?: Record<string, any> | null; stopWhen?: any; as?: string | null; system?: string | null; toolChoice?: any; responseFormat?: any; model?: string | null; role?: string | null; maxTokens?: number | null; temperature?: number | null; seed?: number | null; stop?: any; topP?: number | null; effort?: string | null }, any>
  /** Asks a chat model about images. */
  llmVision: Atom<{ system?: string | null; prompt: string; images: string[]; responseFormat?: any }, any>
  /** Reads a key of the local storage. */
  localStorageGet: Atom<{ key: string }, any>
  /** Sets a key of the local storage. */
  localStorageSet: Atom<{ key: string; value: any }, any>
  /** Whether a < b. */
  lt: Atom<{ a: any; b: any }, any>
  /** Runs steps for each item and collects their `result` variables. */
  map: Atom<{ items: any[]; as: string; steps: any[] }, any>
  /** Evaluates an expression text over the variables of the current scope. */
  mathCalc: Atom<{ expr: string; vars?: Record<string, any> | null }, any>
  /** Deletes a member of an object in place and returns whether it existed. */
  memberDelete: Atom<{ object: Record<string, any>; key: string | number }, any>
  /** Sets a member of an object, or an item of a list, in place and returns the object or list. */
  memberSet: Atom<{ object: any[] | Record<string, any>; key: string | number; value: any }, any>
  /** Runs steps once for each key in a run and remembers their result. */
  memoize: Atom<{ key?: string | null; steps: any[] }, any>
  /** An object of the members of both; those of b win. */
  merge: Atom<{ a: Record<string, any>; b: Record<string, any> }, any>
  /** Whether a != b, with coercion. */
  neq: Atom<{ a: any; b: any }, any>
  /** Whether the value is falsy. */
  not: Atom<{ value: any }, any>
  /** An object without the listed members. */
  omit: Atom<{ obj: Record<string, any>; keys: string[] }, any>
  /** Whether one is truthy. */
  or: Atom<{ a: any; b: any }, any>
  /** An object of the listed members. */
  pick: Atom<{ obj: Record<string, any>; keys: string[] }, any>
  /** Appends an item to a list in place and returns the list. */
  push: Atom<{ list: any[]; item: any }, any>
  /** A random number from min (0) up to max (1), an integer, or text in base 36. */
  random: Atom<{ min?: number | null; max?: number | null; format?: string | null; length?: number | null }, any>
  /** Runs steps for each item; their `result` becomes the accumulator. */
  reduce: Atom<{ items: any[]; as: string; accumulator: string; initial: any; steps: any[] }, any>
  /** The first match of a regular expression in a text, or null: an object of `match`, `index`, `groups` and `named`. */
  regexFind: Atom<{ text: string; pattern: string; flags?: string | null }, any>
  /** All matches of a regular expression in a text as a list, each in the form of regexFind. */
  regexFindAll: Atom<{ text: string; pattern: string; flags?: string | null }, any>
  /** Whether a regular expression matches somewhere in a text. */
  regexMatch: Atom<{ pattern: string; value: any }, any>
  /** The text with the first match of a regular expression replaced, or all of them. */
  regexReplace: Atom<{ text: string; pattern: string; flags?: string | null; replacement: string; all?: boolean | null }, any>
  /** The parts of a text between the matches of a regular expression. */
  regexSplit: Atom<{ text: string; pattern: string; flags?: string | null; limit?: number | null }, any>
  /** Deletes a stored program; returns whether it existed. */
  releaseProcedure: Atom<{ token: string }, any>
  /** Ends the program with the variables that the schema names, or with a value. */
  return: Atom<Record<string, any>, any>
  /** Transpiles source code and runs it in a child scope. */
  runCode: Atom<{ code: string; args?: Record<string, any> | null }, any>
  /** Runs steps in a child scope, whose variables end with it. */
  scope: Atom<{ steps: any[] }, any>
  /** Runs steps one after the other. */
  seq: Atom<{ steps: any[] }, any>
  /** Runs a command on the computer that the host grants. A text is a script for the session's shell, whose directory and variables persist; a list is a program with its arguments. Returns {stdout, stderr, exitCode}. */
  shellExec: Atom<{ command: string | string[]; cwd?: string | null; env?: Record<string, any> | null; stdin?: string | null; timeoutMs?: number | null; encoding?: string | null }, any>
  /** Reads a file of the computer that the host grants, by its absolute path, as text or base64. */
  shellReadFile: Atom<{ path: string; encoding?: string | null; maxBytes?: number | null }, any>
  /** Writes a file on the computer that the host grants, by its absolute path, from text or base64. Returns the number of bytes. */
  shellWriteFile: Atom<{ path: string; content: string; encoding?: string | null; mode?: string | null }, any>
  /** Waits until a time has passed. It counts against the timeout of the run. */
  sleep: Atom<{ ms: number }, any>
  /** A sorted copy of a list; missing values come last. */
  sort: Atom<{ items: any[]; by?: string | any[] | Record<string, any> | null; order?: string | null }, any>
  /** Splits text at a separator. */
  split: Atom<{ str: string; sep: string }, any>
  /** Sets a key if it still has the expected value; returns whether it did. */
  storeCompareAndSet: Atom<{ key: string; expected?: any; value: any; ttlMs?: number | null }, any>
  /** Creates a collection of vectors. */
  storeCreateCollection: Atom<{ collection: string; dimension?: number | null }, any>
  /** Deletes a key; returns whether it existed. */
  storeDelete: Atom<{ key: string }, any>
  /** Reads a key. */
  storeGet: Atom<{ key: string }, any>
  /** A page of the keys that are texts: `{keys, cursor}`, in the order of their bytes. */
  storeList: Atom<{ prefix?: string | null; cursor?: string | null; limit?: number | null }, any>
  /** Stores a program and returns its token. */
  storeProcedure: Atom<{ ast: Record<string, any>; ttl?: number | null; maxSize?: number | null }, any>
  /** Queries the store. */
  storeQuery: Atom<{ query: any }, any>
  /** The rows of a collection that satisfy a verified predicate. */
  storeQueryWhere: Atom<{ predicate: Record<string, any>; collection?: string | null; limit?: number | null }, any>
  /** The k documents of a collection that are nearest to a vector. */
  storeSearch: Atom<{ collection: string; queryVector: number[]; k?: number | null; filter?: Record<string, any> | null }, any>
  /** Sets a key. */
  storeSet: Atom<{ key: string; value: any; ttlMs?: number | null }, any>
  /** Adds a document with its embedding to a collection. */
  storeVectorAdd: Atom<{ collection: string; doc: any }, any>
  /** Deletes the documents of a collection with an `id`; returns whether one existed. */
  storeVectorDelete: Atom<{ collection: string; id: string }, any>
  /** The k documents of a collection that are nearest to a vector. */
  storeVectorSearch: Atom<{ collection?: string | null; vector: number[]; k?: number | null }, any>
  /** Adds a document with its embedding, and replaces the one with its `id`. */
  storeVectorUpsert: Atom<{ collection: string; doc: any }, any>
  /** The embedding of a text. */
  storeVectorize: Atom<{ text: string; model?: string | null }, any>
  /** Sends data to the host while the program runs; returns null. */
  streamChunk: Atom<{ data: any }, any>
  /** The sum of the numbers of a list. */
  sum: Atom<{ items: any[]; by?: string | null }, any>
  /** Replaces each {{name}} in a text by the value of that name. */
  template: Atom<{ tmpl: string; vars?: Record<string, any> | null }, any>
  /** Turns source code into a program. */
  transpileCode: Atom<{ code: string }, any>
  /** Runs `try`; when a step fails, binds the message as `error` and runs `catch`. */
  try: Atom<{ try: any[]; catch?: any[] | null; catchParam?: string | null }, any>
  /** The items of a list without duplicates. */
  unique: Atom<{ items: any[]; by?: string | null }, any>
  /** A random UUID (version 4). */
  uuid: Atom<Record<string, any>, any>
  /** Returns the value of a variable or path. */
  varGet: Atom<{ key: string }, any>
  /** Sets a variable in the current scope. */
  varSet: Atom<{ key: string; value: any }, any>
  /** Returns an object of variables. */
  varsExport: Atom<{ keys: string[] | Record<string, any> }, any>
  /** Copies arguments of the run into variables. */
  varsImport: Atom<{ keys: string[] | Record<string, any> }, any>
  /** Sets each of its keys as a variable, in order. */
  varsLet: Atom<Record<string, any>, any>
  /** Runs `body` as long as the condition is truthy. */
  while: Atom<{ condition: any; vars?: Record<string, any> | null; body: any[] }, any>
  /** Parses XML. */
  xmlParse: Atom<{ str: string }, any>
}

/** Names of the atoms of the language. */
export const CORE: readonly string[] = [
  'Error',
  'agentCallMethod',
  'agentCancelTimer',
  'agentFail',
  'agentIdentity',
  'agentInvite',
  'agentMethodResult',
  'agentPublish',
  'agentRemove',
  'agentRoster',
  'agentRun',
  'agentSend',
  'agentSetSettings',
  'agentSetState',
  'agentSetTimer',
  'agentSettings',
  'agentState',
  'agentStorageExec',
  'agentStorageGet',
  'agentStorageQuery',
  'agentStorageRun',
  'agentUpdate',
  'and',
  'break',
  'cache',
  'callAll',
  'callLocal',
  'clearExpiredProcedures',
  'consoleError',
  'consoleLog',
  'consoleWarn',
  'constSet',
  'continue',
  'domClick',
  'domInput',
  'domText',
  'domValue',
  'eq',
  'filter',
  'find',
  'forEach',
  'groupBy',
  'gt',
  'hash',
  'httpFetch',
  'if',
  'join',
  'jsonParse',
  'jsonStringify',
  'keys',
  'len',
  'llmChat',
  'llmPredict',
  'llmPredictBattery',
  'llmToolLoop',
  'llmVision',
  'localStorageGet',
  'localStorageSet',
  'lt',
  'map',
  'mathCalc',
  'memberDelete',
  'memberSet',
  'memoize',
  'merge',
  'neq',
  'not',
  'omit',
  'or',
  'pick',
  'push',
  'random',
  'reduce',
  'regexFind',
  'regexFindAll',
  'regexMatch',
  'regexReplace',
  'regexSplit',
  'releaseProcedure',
  'return',
  'runCode',
  'scope',
  'seq',
  'shellExec',
  'shellReadFile',
  'shellWriteFile',
  'sleep',
  'sort',
  'split',
  'storeCompareAndSet',
  'storeCreateCollection',
  'storeDelete',
  'storeGet',
  'storeList',
  'storeProcedure',
  'storeQuery',
  'storeQueryWhere',
  'storeSearch',
  'storeSet',
  'storeVectorAdd',
  'storeVectorDelete',
  'storeVectorSearch',
  'storeVectorUpsert',
  'storeVectorize',
  'streamChunk',
  'sum',
  'template',
  'transpileCode',
  'try',
  'unique',
  'uuid',
  'varGet',
  'varSet',
  'varsExport',
  'varsImport',
  'varsLet',
  'while',
  'xmlParse'
]
