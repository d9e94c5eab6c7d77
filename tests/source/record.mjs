// Gives the results of the programs of standard input in JavaScript: each line is the
// JSON text of a source whose default export is the agent, or of [source, args].
import { createInterface } from 'node:readline'

for await (const line of createInterface({ input: process.stdin })) {
  const [source, args] = [JSON.parse(line), {}].flat()
  let answer
  try {
    const module = await import('data:text/javascript,' + encodeURIComponent(source))
    answer = { result: await module.default(args) }
  } catch (error) {
    answer = { error: error.message }
  }
  console.log(JSON.stringify(answer))
}
