// This file holds the text that people see from this package.

package client

const (
	textSignedIn     = "Signed in to %s.\n"
	textOpenAddress  = "Open this address in a browser, and sign in:\n\n%s\n\n"
	textPasteAddress = "The browser will end up on a page it can't open. Paste that page's address here:"
	textPasteIfStuck = "The browser will end up at %s. If it can't open that page, paste the page's address here:\n"
)
