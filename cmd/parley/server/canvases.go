package server

import (
	"context"
	"errors"
	"log/slog"

	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/data/home"
	"parley/tools"
	"parley/tools/canvas"
	"parley/tools/canvas/folder"
)

// newBrowser returns the browser that makes pictures of agents' drawings, or nil if none is configured.
func newBrowser(on foundation, box *commandSandbox) *canvas.Browser {
	program := on.settings.Load().Canvas.Browser
	if program == "" {
		return nil
	}
	browser := canvas.NewBrowser(box, program, canvas.BrowserTime)
	if err := browser.CheckProgram(); err != nil {
		on.log.Warn("chats get what agents draw as files, without a picture, until [canvas] browser can be run", slog.String("browser", program), slog.Any("error", err))
	}
	return browser
}

// newCanvasTool returns the tool with which agents draw.
func newCanvasTool(w *home.CallWorkspaces, reader *canvas.Reader, browser *canvas.Browser) tools.Tool {
	return canvas.New(folder.Keep(func(ctx context.Context, call tools.Call) (folder.Dir, error) {
		return w.Open(ctx, call)
	}), reader, browser)
}

// canvasReader returns the function that reads canvases of sessions for the web page; see [folder.Read].
func canvasReader(on foundation) func(ctx context.Context, session, name string, scripts bool) (doc []byte, policy string, err error) {
	return func(ctx context.Context, session, name string, scripts bool) ([]byte, string, error) {
		files, err := on.home.WorkspaceFiles(session)
		if err != nil {
			return nil, "", err
		}
		doc, policy, err := folder.Read(ctx, on.canvases, folder.Room{Session: session, Files: files}, name, scripts)
		if unshown, ok := errors.AsType[*folder.UnshownError](err); ok {
			err = exchange.Unprocessable(unshown.Code, "%s", unshown.Why)
		}
		return doc, policy, err
	}
}
