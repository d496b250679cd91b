import { render } from 'preact'
import { Frame } from './frame/frame.tsx'
import { applyTheme, storedTheme } from './frame/theme.ts'
import { PAGES } from './pages/index.ts'
import { currentPlace, startRouter } from './place.ts'
import './style/tokens.css'
import './style/base.css'
import './style/frame.css'
import './style/parts.css'

applyTheme(storedTheme())
startRouter()
// Its code arrives while the frame is painted. The frame loads it too, and shows a failure.
const [page = ''] = currentPlace().segments
if (Object.hasOwn(PAGES, page)) PAGES[page]!.load().catch(() => {})
render(<Frame />, document.getElementById('root')!)
