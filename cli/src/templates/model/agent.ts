/** Sums up a page in one sentence. */
export default async function agent({ url }: { url: string }) {
  const page = await httpFetch({ url })
  const summary = await llmPredict({ prompt: `Sum up in one sentence:\n${page.body}` })
  return { summary }
}
