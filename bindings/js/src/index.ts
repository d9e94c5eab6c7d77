export { AgentError, EngineError, isAgentError, type Diagnostic } from './errors.js'
export { s, toJSONSchema, validate, type Base, type Infer, type JSONSchema, type SchemaOf, type StandardSchema } from './schema.js'
export {
  batteryAtoms,
  coreAtoms,
  defineAtom,
  llmPredictBattery,
  llmVision,
  resolveValue,
  storeCreateCollection,
  storeSearch,
  storeVectorAdd,
  storeVectorize,
  type Atom,
  type AtomDef,
  type AtomEffects,
  type AtomMap,
  type AtomOptions,
  type Cost,
} from './atoms.js'
export type { CoreAtoms } from './core.generated.js'
export type { Capabilities } from './capabilities.js'
export type { AtomContext, AtomContext as RuntimeContext, Fuel } from './context.js'
export {
  A99,
  Agent,
  parseCondition,
  TypedBuilder,
  type ArgRef,
  type BaseNode,
  type BuilderType,
  type Conditions,
  type ExprNode,
  type SeqNode,
} from './builder.js'
export {
  AgentVM,
  Program,
  type AgentVMOptions,
  type ProgramInfo,
  type Runnable,
  type ToolFilter,
  type ToolForm,
} from './vm.js'
export type { RunEvent, RunOptions } from './options.js'
export type { RunResult, TraceEvent } from './run.js'
export { Steps, type StepEvent } from './steps.js'
export { ajs, transpile, type TranspileResult } from './source.js'
export { explain, version } from './host.js'
export { batteries, getBatteries, getStandardCapabilities } from './batteries.js'
