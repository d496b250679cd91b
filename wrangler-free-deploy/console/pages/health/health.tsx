/** The health of the broker, its stored data, and its coverage gaps. */
import { href, usePlace } from '../../place.ts'
import '../lists.css'
import { Broker } from './broker.tsx'
import { Gaps, PARTS, type PartName } from './gaps.tsx'

const TITLES: Readonly<Record<PartName, string>> = {
  images: 'Images',
  containers: 'Containers',
  nodes: 'Nodes',
  workloads: 'Workloads',
}

export default function Health() {
  const asked = usePlace().query.get('part')
  const part = PARTS.find((one) => one === asked)
  return (
    <>
      <h1>{part === undefined ? 'Health' : `Not known of ${TITLES[part].toLowerCase()}`}</h1>
      <nav class="tabs" aria-label="Parts of health">
        <a href={href(['health'])} aria-current={part === undefined ? 'page' : undefined}>
          Broker
        </a>
        {PARTS.map((one) => (
          <a key={one} href={href(['health'], { part: one })} aria-current={part === one ? 'page' : undefined}>
            <span class="unseen">Not known of </span>
            {TITLES[one]}
          </a>
        ))}
      </nav>
      {part === undefined ? <Broker /> : <Gaps key={part} part={part} />}
    </>
  )
}
