package attachments

import (
	"context"
	"errors"
	"io/fs"

	"parley/agent/llm"
	"parley/agent/pictures"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/image"
)

// maxPicture is the largest file that the agent's tool "image" reads, in bytes.
const maxPicture = 32 << 20

// Picture reads from the workspace a picture that the model is about to be shown; it returns nil if
// the picture is missing or has changed since.
func (k *Keeper) Picture(_ context.Context, session string, p llm.Picture) []byte {
	dir, err := k.cfg.Workspace(session)
	if err != nil {
		return nil
	}
	return pictures.Read(dir, p.View, p.Hash)
}

// Show prepares a picture in the session's workspace for the model, when the model has called the
// tool "image": it scales the picture and stores the result.
func (k *Keeper) Show(ctx context.Context, call tools.Call, path string) (image.Picture, error) {
	if !k.cfg.SeesPictures(call.Session) {
		return image.Picture{}, tools.Errorf(tools.ExecutionFailed, "you cannot see pictures: the configuration says so, or the model's server has refused them")
	}
	dir, err := k.cfg.Writable(ctx, call)
	if err != nil {
		return image.Picture{}, toolError(err)
	}
	name, err := dir.Name(path)
	if err != nil {
		return image.Picture{}, toolError(err)
	}
	raw, err := pictures.ReadFile(dir, name, maxPicture)
	if errors.Is(err, pictures.ErrTooLarge) {
		return image.Picture{}, tools.Errorf(tools.ExecutionFailed, "%q is larger than %d MB: make it smaller first", name, maxPicture>>20)
	}
	if err != nil {
		return image.Picture{}, toolError(err)
	}
	kept, err := k.fitter.Keep(ctx, dir, raw)
	if err != nil {
		return image.Picture{}, toolError(err)
	}
	return image.Picture{
		Picture: tools.Picture{Path: name, View: kept.View, Hash: kept.Hash, Type: kept.Type},
		Width:   kept.Width, Height: kept.Height,
	}, nil
}

// toolError turns an error into one for the model.
func toolError(err error) error {
	code := tools.ExecutionFailed
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return tools.Errorf(tools.FileNotFound, "%v: list_directory and glob show what's there", err)
	case errors.Is(err, fs.ErrInvalid):
		code = tools.InvalidPath
	case errors.Is(err, fs.ErrPermission):
		code = tools.PermissionDenied
	case errors.Is(err, workspace.ErrQuota):
		return tools.Errorf(code, "%v: there is no room for the smaller copy that you would be shown", err)
	}
	return tools.Errorf(code, "%v", err)
}
