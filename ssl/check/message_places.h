// SPDX-License-Identifier: Apache-2.0
//
// Says of what is wrong with a run where it stands in its configuration. Stateless; safe from any thread.
//
//   return WithPlaces(session.status(), root);
#ifndef SSL_CHECK_MESSAGE_PLACES_H_
#define SSL_CHECK_MESSAGE_PLACES_H_

#include "absl/status/status.h"
#include "ssl/config/node.h"

namespace ssl {

// An InvalidArgument, NotFound or Unimplemented gets the place of the name or the key that each line of it is about,
// unless the line has one (ssl/config/message_place.h), and the whole key where it is about a parameter of a transform,
// a head or a schedule; code and payloads stay. Other statuses stay as they are.
// root: {engine_name, config}.
absl::Status WithPlaces(const absl::Status& status, const ConfigNode& root);

}  // namespace ssl

#endif  // SSL_CHECK_MESSAGE_PLACES_H_
