#include "tools/data/nearest_name.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace librt::tools {
namespace {

std::string nearest(std::string_view wanted, std::initializer_list<const char*> known) {
  NearestName found(wanted);
  for (const char* name : known) found.consider(name);
  return found.name();
}

TEST(NearestName, FewLettersMayDiffer) {
  EXPECT_EQ(nearest("percptron", {"tabular", "perceptron"}), "perceptron");
  EXPECT_EQ(nearest("conv1.bios", {"conv1.weight", "conv1.bias"}), "conv1.bias");
  EXPECT_EQ(nearest("ab", {"abcd"}), "abcd");
  EXPECT_EQ(nearest("ab", {"abcde"}), "");
  EXPECT_EQ(nearest("perceptron", {"scaling", "memory"}), "");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(NearestName, AMissingPrefixIsNoDifference) {
  EXPECT_EQ(nearest("fc.weight", {"fc2.weight", "model.fc.weight"}), "model.fc.weight");
  EXPECT_EQ(nearest("module.model.fc.weight", {"model.fc.weight"}), "model.fc.weight");
  EXPECT_EQ(nearest("lenet5", {"zoo:resnet18", "zoo:lenet5"}), "zoo:lenet5");
  EXPECT_EQ(nearest("lenet", {"zoo:resnet18", "zoo:lenet5"}), "zoo:lenet5");
  EXPECT_EQ(nearest("zoo:lenet", {"zoo:resnet18", "zoo:lenet5"}), "zoo:lenet5");
  EXPECT_EQ(nearest("weight", {"fcweight"}), "fcweight") << "two letters, which are no prefix";
  EXPECT_EQ(nearest("", {"x."}), "x.") << "as two letters differ";
}

TEST(NearestName, TheFirstOfEqualOnesAndNoneOfLongOnes) {
  EXPECT_EQ(nearest("net", {"nets", "nett"}), "nets");
  const std::string longest(300, 'x');
  EXPECT_EQ(nearest(longest, {longest.c_str()}), "");
  EXPECT_EQ(nearest("x", {longest.c_str()}), "");
  NearestName none("x");
  EXPECT_EQ(none.question(), "");
  none.consider("y");
  EXPECT_EQ(none.question(), "did you mean 'y'?");
}

}  // namespace
}  // namespace librt::tools
