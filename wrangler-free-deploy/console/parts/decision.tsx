/** Decisions about vulnerabilities, in words. */
import type { Answer } from '../api/client.ts'
import { DECISIONS } from './finding-words.ts'
import { Badge, Digest, Workload } from './text.tsx'

type Decision = Answer<'/vulnerabilities/{id}/decisions'>['items'][number]

export function DecisionBadge({ decision }: { decision: Decision['decision'] }) {
  const { word, tone } = DECISIONS[decision]
  return <Badge tone={tone}>{word}</Badge>
}

/** Where a decision holds. */
export function Scope({ scope }: { scope: Decision['scope'] }) {
  switch (scope.type) {
    case 'workload':
      return <Workload {...scope} />
    case 'image':
      return (
        <span>
          <Digest digest={scope.digest} /> {scope.arch}
        </span>
      )
    case 'repository':
      return <span>all images of {scope.repository}</span>
    case 'namespace':
      return <span>namespace {scope.namespace}</span>
    case 'all':
      return <span>everywhere</span>
  }
}

export function scopeText(scope: Decision['scope']): string {
  switch (scope.type) {
    case 'workload':
      return `${scope.namespace}/${scope.kind}/${scope.name}`
    case 'image':
      return scope.arch === undefined ? scope.digest : `${scope.digest} ${scope.arch}`
    case 'repository':
      return scope.repository
    case 'namespace':
      return `namespace ${scope.namespace}`
    case 'all':
      return 'all'
  }
}
