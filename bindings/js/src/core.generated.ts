import type { Atom } from './atoms.js'
export interface CoreAtoms { [op: string]: Atom<any, any> }
export const CORE: string[] = []
