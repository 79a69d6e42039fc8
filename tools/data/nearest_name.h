// "Did you mean": the known name that a mistyped one is most like.
#pragma once

#include <string>
#include <string_view>

namespace librt::tools {

/// Gets the known names one after the other. What differs by up to a third of the letters, or by two, is like
/// the wanted name; so is one that has a prefix before a dot or a colon that the other one lacks
/// ("model.fc.weight" and "fc.weight", "zoo:lenet5" and "lenet5"). Ties go to the first.
class NearestName {
 public:
  explicit NearestName(std::string_view wanted);
  void consider(std::string_view known);
  /// Empty: none is like it.
  const std::string& name() const noexcept { return name_; }
  /// "did you mean 'NAME'?", or empty.
  std::string question() const { return name_.empty() ? "" : "did you mean '" + name_ + "'?"; }

 private:
  std::string_view wanted_;
  std::string name_;
  size_t least_;  ///< only what differs by less
};

}  // namespace librt::tools
