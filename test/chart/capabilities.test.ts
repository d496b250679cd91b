/** Capabilities of the broker, each with the rows of the dashboard that show it and the alerts for its failure. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { OPERATIONS, withAlerts } from '../../scripts/chart-alerts.ts'
import { CHART } from '../../scripts/chart-values.ts'

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly targets?: readonly { expr: string }[]
}

const capabilities: Record<string, { rows: readonly string[]; alerts: readonly string[] }> = {
  'core telemetry': {
    rows: ['Ingest', 'Reads'],
    alerts: [
      'BrokerNoAgent',
      'BrokerNodesSilent',
      'BrokerTokensRefused',
      'BrokerAgentClockSkew',
      'BrokerErrors',
      'BrokerReadsShed',
      'BrokerBodiesShed',
      'BrokerEntriesRejected',
      'BrokerFollowersBehind',
      'BrokerEdgesBehind',
    ],
  },
  audit: { rows: ['Audit'], alerts: ['BrokerAuditFlowsShed', 'BrokerEvaluatorUnreachable'] },
  'supply chain': {
    rows: ['Supply chain'],
    alerts: ['BrokerSbomsRefused', 'BrokerSupplyChainPostsRefused', 'BrokerImagesNotScanned'],
  },
  'attestations and image trust': {
    rows: ['Attestations and image trust'],
    alerts: ['BrokerNoSignatureResult', 'BrokerSignatureResultsRefused'],
  },
  'seccomp and denials': { rows: ['Seccomp'], alerts: ['BrokerNoSeccompReport', 'BrokerNoDenialReport'] },
  'runtime inventory': { rows: ['Runtime inventory'], alerts: ['BrokerNoRuntimeHeartbeat'] },
  compute: { rows: ['Compute'], alerts: ['BrokerNoComputeSample', 'BrokerComputeFoldBehind'] },
  jobs: { rows: ['Jobs'], alerts: ['BrokerJobOverdue'] },
  database: {
    rows: ['Database'],
    alerts: [
      'BrokerDatabaseUnreachable',
      'BrokerSchemaNotReady',
      'BrokerStatementsRefused',
      'BrokerServerConnections',
      'BrokerTableGrows',
      'BrokerDeadRows',
    ],
  },
  'edge proxy': { rows: ['Edge proxy'], alerts: ['FrontendDown', 'FrontendUpstreamErrors'] },
  process: { rows: ['Process'], alerts: ['BrokerDown', 'BrokerMemoryHigh', 'BrokerEventLoopSlow'] },
}

const read = (name: string) => readFileSync(new URL(name, CHART), 'utf8')
const panels: Panel[] = JSON.parse(read('files/dashboard.json')).panels
const written = read('templates/monitoring/_alerts.tpl')
  .split(/^- alert: /m)
  .slice(1)
  .map((text) => ({ name: /^\w+/.exec(text)![0], text }))

/** The panels below a row, up to the next. */
function panelsOf(title: string): Panel[] {
  const from = panels.findIndex((panel) => panel.type === 'row' && panel.title === title) + 1
  const to = panels.findIndex((panel, at) => at >= from && panel.type === 'row')
  return from === 0 ? [] : panels.slice(from, to === -1 ? undefined : to)
}

for (const [capability, { rows, alerts }] of Object.entries(capabilities)) {
  test(`${capability}: its rows have panels, its alerts a summary and a runbook`, () => {
    assert.ok(rows.length > 0 && alerts.length > 0)
    for (const row of rows) {
      assert.ok(panelsOf(row).length > 0, row)
      for (const { title, targets } of panelsOf(row))
        assert.ok(targets!.length > 0 && targets!.every(({ expr }) => expr !== ''), title)
    }
    for (const alert of alerts) {
      const { text } = written.find(({ name }) => name === alert) ?? assert.fail(`there is no alert ${alert}`)
      assert.match(text, /^ {2}for: \d+m$/m, alert)
      assert.match(text, /^ {4}summary: \S/m, alert)
      assert.match(text, /^ {4}runbook: \S/m, alert)
    }
  })
}

test('each row and each alert belongs to a capability', () => {
  const all = Object.values(capabilities)
  const rows = panels.filter(({ type }) => type === 'row').map(({ title }) => title)
  assert.deepEqual(rows.toSorted(), all.flatMap((one) => one.rows).toSorted())
  assert.deepEqual(written.map(({ name }) => name).toSorted(), all.flatMap((one) => one.alerts).toSorted())
})

test('the dashboard has table sizes and growth, dead rows, server connections, silent nodes, refused tokens', () => {
  const asked = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
  for (const shown of [
    /by \(table\) \(broker_db_table_bytes\{[^}]*\}\)$/,
    /by \(table\) \(delta\(broker_db_table_bytes\{[^}]*\}\[1d\]/,
    /by \(table\) \(broker_db_table_dead_rows/,
    /broker_db_server_connections\{/,
    /broker_db_server_connections_max\{/,
    /by \(state\) \(broker_nodes/,
    /by \(route, status\) .*status=~"401\|403"/,
  ])
    assert.ok(
      asked.some((expr) => shown.test(expr)),
      String(shown),
    )
})

test('docs/operations.md lists every alert with its meaning and remedy; `npm run chart` writes them', () => {
  const page = readFileSync(OPERATIONS, 'utf8')
  assert.equal(withAlerts(page), page)
  const section = page.slice(page.indexOf('## On call'))
  for (const { name } of written) assert.match(section, new RegExp(`^\\| \`${name}\` \\| \\S.*\\. \\| \\S.* \\|$`, 'm'))
  assert.doesNotMatch(section.slice(0, section.indexOf('<!-- alerts:end -->')), /\{\{/)
})

test('panels have unique numbers', () => {
  const ids = panels.map(({ id }) => id)
  assert.equal(new Set(ids).size, ids.length)
})
