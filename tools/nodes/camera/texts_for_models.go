package camera

// What models read.
const (
	about         = "Take a picture with this device's camera. It is stored in the device's workspace: the result names the file and, unless the picture is large, contains it as base64."
	textNoPicture = "the camera's command has written %d bytes that are no picture (%s): the operator of the device has to look at [node] camera"
	textFailed    = "the camera's command has failed (%v): %s"
	textTooLarge  = "the picture has more than %d MB, so it wasn't stored: the operator of the device has to make it smaller in [node] camera"
	textLarge     = "The picture has more than %d KB, so it is only in the file: make a smaller copy there to see it."
)
