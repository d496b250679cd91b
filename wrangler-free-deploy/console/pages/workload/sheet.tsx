/** Details in a dialog over the page. The browser keeps the focus inside, and Escape closes it. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

export function Sheet({
  title,
  onClose,
  children,
}: {
  title: string
  onClose: () => void
  children: ComponentChildren
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog class="details-sheet" ref={dialog} aria-label={title} onClose={onClose}>
      <div class="details-body">
        <div class="details-top">
          <h2>{title}</h2>
          <button type="button" class="quiet" onClick={() => dialog.current?.close()}>
            Close
          </button>
        </div>
        {children}
      </div>
    </dialog>
  )
}
