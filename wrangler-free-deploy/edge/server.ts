/**
 * The edge proxy as a process: configuration, listen, drain. It serves reads of the broker to clients that must not
 * have a token, such as browsers.
 */
import { once } from 'node:events'
import type { Logger } from 'pino'
import { watchTokenFiles } from '../../lib/config/token-files.ts'
import { CONSOLE_PATH } from '../../lib/console/answer.ts'
import { openConsole } from '../../lib/console/files.ts'
import { close, displayAddress, listen } from '../../lib/http/server/listen.ts'
import type { Cut } from '../../lib/http/server/slow-readers.ts'
import { runServer } from '../../lib/process/run-server.ts'
import type { StopSignals } from '../../lib/process/stop-signals.ts'
import { createAdmin } from './admin.ts'
import { createEdge } from './app.ts'
import { type EdgeConfig, loadConfig, redacted } from './config.ts'
import { refuseConnect } from './connect.ts'
import { createMetrics } from './metrics.ts'
import { openUpstream } from './upstream.ts'

/** Kubernetes still sends requests to a pod for a moment after telling it to stop. */
const ENDPOINTS_PROPAGATION_MS = 3_000
const FINISH_REQUESTS_MS = 10_000
/** Only a scrape can be in progress there. */
const FINISH_SCRAPES_MS = 1_000

/** Resolves after the signal to stop, when requests in progress have ended. */
async function serve(config: EdgeConfig, log: Logger, signals: StopSignals): Promise<void> {
  const { aborted } = signals
  const metrics = createMetrics()
  const draining = () => aborted.aborted
  const upstream = openUpstream(config.brokerUrl)
  let configured = config.token === null ? [] : [config.token]
  const tokenWatch = watchTokenFiles({
    files: config.tokenFiles,
    tokens: {
      get configured() {
        return configured
      },
      replace(tokens) {
        configured = [...tokens]
      },
    },
    log,
  })
  const consoleFiles = config.consoleEnabled ? openConsole({ tokenSource: 'proxy', log }) : null
  const { fetch, before } = createEdge({
    config,
    log,
    metrics,
    upstream,
    draining,
    token: () => configured[0]?.value ?? null,
    consoleFiles,
  })
  const onCut = (cut: Cut) => {
    metrics.slowReadersCut.inc()
    log.info(cut, 'a slow reader was cut')
  }
  const edge = await signals.race(listen(fetch, config.listen, { onCut, before, variable: 'LISTEN_ADDR' }))
  edge.server.on('connect', refuseConnect)
  const admin = await signals.race(
    listen(createAdmin({ metrics, draining }).fetch, config.adminListen, { variable: 'ADMIN_ADDR' }),
  )
  const address = displayAddress(edge.address)
  const pages = consoleFiles === null ? {} : { console: `${address}${CONSOLE_PATH}/` }
  log.info({ edge: address, ...pages, admin: displayAddress(admin.address) }, 'listening')

  await once(aborted, 'abort')
  if (config.nodeEnv === 'production') await new Promise((resolve) => setTimeout(resolve, ENDPOINTS_PROPAGATION_MS))
  await close(edge.server, FINISH_REQUESTS_MS)
  await close(admin.server, FINISH_SCRAPES_MS)
  tokenWatch.stop()
  upstream.end()
}

await runServer(loadConfig, redacted, serve)
