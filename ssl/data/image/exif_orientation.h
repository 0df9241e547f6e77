// SPDX-License-Identifier: Apache-2.0
//
// The orientation that a camera notes in a file's EXIF data, or an editor in XMP, and turning the image upright, as
// Pillow's ImageOps.exif_transpose does. Bytes are not trusted: what is damaged has no orientation. Functions without
// state; safe from any thread.
#ifndef SSL_DATA_IMAGE_EXIF_ORIENTATION_H_
#define SSL_DATA_IMAGE_EXIF_ORIENTATION_H_

#include "absl/strings/string_view.h"
#include "ssl/data/image/image.h"

namespace ssl {

// Of an encoded JPEG, PNG or WebP: 1 to 8 as in tag 0x0112 of the EXIF standard, or, where EXIF lacks it, as
// tiff:Orientation of XMP says; 1, upright, when there is neither.
int ExifOrientation(absl::string_view bytes);

// Whether the sides of the image are exchanged when it is turned upright.
inline bool ExchangesSides(int orientation) { return orientation >= 5; }

// `result` becomes `source`, another image, turned and mirrored as `orientation`, 1 to 8, asks for. The sides of a
// reduced one (Image::reduction) are whole multiples: otherwise its last pixels stand for less than the others, and
// would come first.
void TurnUpright(int orientation, const Image& source, Image* result);

}  // namespace ssl

#endif  // SSL_DATA_IMAGE_EXIF_ORIENTATION_H_
