// The function, as AWS Lambda, Netlify and others call it: a process of a99 for each request.
import { spawn } from 'node:child_process'

export async function handler(event) {
  const words = ['agent', 'handle', '--channels', process.env.A99_CHANNELS]
  const child = spawn('a99', words, { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.on('error', () => {}).end(JSON.stringify(event))
  let answer = ''
  for await (const piece of child.stdout.setEncoding('utf8')) {
    answer += piece
    // Turns that go on need no more of the platform than that the process runs.
    if (answer.endsWith('\n')) break
  }
  return answer ? JSON.parse(answer) : { statusCode: 500 }
}
