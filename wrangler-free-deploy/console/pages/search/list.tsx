/** All search results by type. */
import type { ComponentChildren } from 'preact'
import type { Answer } from '../../api/client.ts'
import { addressOf } from '../../api/client.ts'
import { useRead } from '../../api/query.ts'
import { type Hit, labelOf, placeOf } from '../../frame/hits.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Empty, Shown } from '../../parts/states.tsx'
import { Badge } from '../../parts/text.tsx'
import { Ago } from '../../parts/time.tsx'
import { go, href, hrefWith, usePlace } from '../../place.ts'
import { hitsByType, PLURALS } from './groups.ts'
import './search.css'

const OF_EACH_TYPE = 20
const MOST = 50
const count = new Intl.NumberFormat()

export default function Search() {
  const { query } = usePlace()
  const text = query.get('q')?.trim() ?? ''
  return (
    <>
      <h1>{text === '' ? 'Search' : `Results for “${text}”`}</h1>
      <SearchForm key={text} text={text} />
      {text === '' ? (
        <Empty title="Nothing is searched for">
          Type the name of a workload, pod, service, namespace or node, an address, the id of a vulnerability, a
          package, or an image by its repository or digest.
        </Empty>
      ) : (
        <Results text={text} limit={query.get('limit') === String(MOST) ? MOST : OF_EACH_TYPE} />
      )}
    </>
  )
}

function SearchForm({ text }: { text: string }) {
  return (
    <form
      class="search-form"
      onSubmit={(event) => {
        event.preventDefault()
        go(hrefWith({ q: String(new FormData(event.currentTarget).get('q') ?? '').trim(), limit: null }))
      }}
    >
      <input type="search" name="q" aria-label="Search for" defaultValue={text} autoComplete="off" spellcheck={false} />
      <button type="submit">Search</button>
    </form>
  )
}

function Results({ text, limit }: { text: string; limit: number }) {
  const question = { query: { q: text, limit } }
  const reading = useRead('/search', question)
  return (
    <Shown reading={reading}>
      {(answer) => (
        <>
          <div class="table-tools">
            <span class="faint">
              {count.format(answer.hits.length)} {answer.hits.length === 1 ? 'result' : 'results'}
            </span>
            <span class="grow" />
            <CopyAs ctb={['search', text]} url={addressOf('/search', question)} />
          </div>
          <Unseen answer={answer} />
          {answer.hits.length === 0 && (
            <Empty title="Nothing is stored that this could name">
              Names are found by their beginning, not by a part in the middle; a digest needs six digits.{' '}
              {answer.notCovered > 0 && 'Of some running images nothing is known, see above.'}
            </Empty>
          )}
          {hitsByType(answer.hits).map(({ type, hits }) => (
            <section key={type} class="section" aria-labelledby={`hits-${type}`}>
              <h2 id={`hits-${type}`}>{PLURALS[type]}</h2>
              <ul class="hits">
                {hits.map((hit) => (
                  <HitLine key={placeOf(hit)} hit={hit} />
                ))}
              </ul>
              {answer.truncated.includes(type) && (
                <p class="faint">
                  There are more.{' '}
                  {limit < MOST ? (
                    <a href={hrefWith({ limit: String(MOST) })}>Show up to {MOST} of each type</a>
                  ) : (
                    'Type more of the name to find them.'
                  )}
                </p>
              )}
            </section>
          ))}
        </>
      )}
    </Shown>
  )
}

/** Parts of the data that the search could not cover, so that "no hit" is not read as "nowhere". */
function Unseen({ answer: { notCovered, notRead } }: { answer: Answer<'/search'> }) {
  return (
    <>
      {notCovered > 0 && (
        <p class="note">
          {count.format(notCovered)} running {notCovered === 1 ? 'image has' : 'images have'} neither a report nor an
          SBOM: packages and vulnerabilities in {notCovered === 1 ? 'it' : 'them'} are not found here.{' '}
          <a href={href(['images'])}>Images</a>
        </p>
      )}
      {notRead > 0 && (
        <p class="note">
          {count.format(notRead)} new {notRead === 1 ? 'payload was' : 'payloads were'} not searched yet: ask again in a
          minute.
        </p>
      )}
    </>
  )
}

function HitLine({ hit }: { hit: Hit }) {
  return (
    <li>
      <a href={placeOf(hit)}>{labelOf(hit)}</a>
      {hit.running === true && <Badge tone="good">runs</Badge>}
      {hit.running === false && <Badge>does not run</Badge>}
      <span class="faint">{aboutOf(hit)}</span>
    </li>
  )
}

/** The detail that distinguishes a hit from others of its type. */
function aboutOf(hit: Hit): ComponentChildren {
  switch (hit.type) {
    case 'pod':
      return [
        `on ${hit.node}, ${hit.address}`,
        ...(hit.workloadName === null ? [] : [`of ${hit.workloadKind} ${hit.workloadName}`]),
      ].join(', ')
    case 'service':
      return hit.name === null ? 'a service without a name' : hit.address
    case 'image':
      return hit.inInventory ? '' : 'known to scanners only'
    case 'address':
      return (
        <>
          {hit.public ? 'a public address' : 'an address in the cluster, or near it'}, {count.format(hit.peerCount)}{' '}
          {hit.peerCount === 1 ? 'peer' : 'peers'}, newest flow <Ago at={hit.lastNewAt} />
        </>
      )
    default:
      return hit.match === 'part' ? 'another name of the same, or a part of it' : ''
  }
}
