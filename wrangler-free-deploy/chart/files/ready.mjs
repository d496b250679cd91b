// Ends with 0 when the broker works, and the edge proxy, where there is one, reaches it; else with 1 and the reason.
const PATIENCE_MS = Number(process.env.PATIENCE_MS ?? 60_000)
const ANSWER_MS = 5_000
const PAUSE_MS = 1_000
const end = Date.now() + PATIENCE_MS

/** Undefined when the answer is as it should be, else a sentence. */
async function fault(url) {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) })
    const text = await answer.text()
    return text === 'Healthy!' ? undefined : `${url} answers ${answer.status}: ${text.slice(0, 200)}`
  } catch (error) {
    return `${url} does not answer: ${error.cause?.message ?? error.message}`
  }
}

for (const base of [process.env.BROKER_URL, process.env.EDGE_URL].filter(Boolean)) {
  const url = `${base}/health`
  let found = await fault(url)
  while (found !== undefined && Date.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    found = await fault(url)
  }
  process.stdout.write(`${found ?? `${url} is healthy`}\n`)
  if (found !== undefined) process.exit(1)
}
