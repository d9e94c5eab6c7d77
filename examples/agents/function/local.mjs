// The platform, for trying the function on this machine.
import { createServer } from 'node:http'
import { handler } from './function.mjs'

createServer(async (request, response) => {
  let body = ''
  for await (const piece of request.setEncoding('utf8')) body += piece
  const answer = await handler({ path: request.url, headers: request.headers, body })
  response.writeHead(answer.statusCode, answer.headers).end(answer.body)
}).listen(8099, '127.0.0.1')
