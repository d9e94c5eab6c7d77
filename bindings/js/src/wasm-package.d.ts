declare module '@agent99/wasm' {
  /** The address of the engine. */
  const address: URL
  export default address
}
