import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/** Seconds; few buckets, since rendering blocks the event loop. */
const DURATION_BUCKETS_SECONDS = [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 30]

/** All metrics of the proxy. Labels are methods and outcomes, never paths. */
export type Metrics = ReturnType<typeof createMetrics>

export function createMetrics() {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 20 })
  return {
    registry,
    requests: new Counter({
      name: 'edge_http_requests_total',
      help: 'Requests, by method and class of the status; none where the client left before it.',
      labelNames: ['method', 'status'] as const,
      registers,
    }),
    duration: new Histogram({
      name: 'edge_http_request_duration_seconds',
      help: 'Time to the last byte of the answer.',
      labelNames: ['method'] as const,
      buckets: DURATION_BUCKETS_SECONDS,
      registers,
    }),
    inFlight: new Gauge({ name: 'edge_http_requests_in_flight', help: 'Requests under way.', registers }),
    upstreamErrors: new Counter({
      name: 'edge_upstream_errors_total',
      help: 'Requests that the broker did not answer as it should: unreachable, timeout, nonsense, cut; and full, those it was spared.',
      labelNames: ['kind'] as const,
      registers,
    }),
    retries: new Counter({
      name: 'edge_upstream_retries_total',
      help: 'Requests that were sent once more, since the connection had ended before an answer began.',
      registers,
    }),
    slowReadersCut: new Counter({
      name: 'edge_slow_readers_cut_total',
      help: 'Connections cut because answers were taken too slowly.',
      registers,
    }),
  }
}
