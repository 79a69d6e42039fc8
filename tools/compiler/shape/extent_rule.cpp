// Which kind of rule gives an operator's results their extents. There is no default: an operator that is
// missing here does not compile.
#include "tools/compiler/shape/rules.h"

namespace librt::compiler {

ExtentRule extent_rule(OpKind kind) noexcept {
  using enum op::Op;
  switch (kind) {
    case Abs:
    case Neg:
    case Exp:
    case Log:
    case Sqrt:
    case Reciprocal:
    case Sin:
    case Cos:
    case Atan:
    case Tanh:
    case Sigmoid:
    case Relu:
    case Erf:
    case Floor:
    case Ceil:
    case Round:
    case Sign:
    case Not:
    case Softplus:
    case LeakyRelu:
    case Elu:
    case HardSigmoid:
    case HardSwish:
    case Clip:
    case Gelu:
    case Silu:
    case Cast:
    case Identity:
    case Softmax:
    case LogSoftmax:
    case LayerNorm:
    case BatchNorm:
    case CumSum:
    case CumProd:
    case ScatterElements:
    case ScatterND:
    case TensorScatter:
    case RotaryEmbedding:
    case QuantizeLinear:
    case DequantizeLinear:
    case NarrowFloat:
    case FakeQuantize:
    case Lookup:
    case Requantize:
    case MaxPoolGrad:
    case AllReduce:
    case CollectiveWait: return ExtentRule::LikeFirst;
    case Add:
    case Sub:
    case Mul:
    case Div:
    case Pow:
    case Minimum:
    case Maximum:
    case Mod:
    case Equal:
    case Less:
    case LessOrEqual:
    case Greater:
    case GreaterOrEqual:
    case And:
    case Or:
    case Xor:
    case Where:
    case BitwiseAnd:
    case BitwiseOr:
    case BitwiseXor:
    case BitShift: return ExtentRule::Broadcast;
    case Transpose:
    case Gather:
    case GatherElements:
    case GatherND:
    case ReduceSum:
    case ReduceMean:
    case ReduceMax:
    case ReduceMin:
    case ReduceProd:
    case ArgMax:
    case ArgMin:
    case Shape:
    case NonZero:
    case NonMaxSuppression:
    case GridSample:
    case RoiAlign:
    case RoiAlignGrad:
    case Attention:
    case AttentionGrad:
    case LSTM:
    case GRU:
    case RNN:
    case LSTMGrad:
    case GRUGrad:
    case RNNGrad:
    case BatchNormTrain:
    case BatchNormGrad:
    case SoftmaxCrossEntropy:
    case SgdStep:
    case AdamStep:
    case RmsPropStep:
    case AdagradStep:
    case AdadeltaStep:
    case LambStep:
    case LionStep:
    case BlockwiseStep:
    case GlobalNorm:
    case AllFinite:
    case LossScaleUpdate:
    case CtcLoss:
    case QuantizedAdd:
    case DynamicQuantizeLinear:
    case WeightQuantizedMatMul:
    case BlockDequantize: return ExtentRule::Copied;
    case Reshape:
    case Concat:
    case Slice:
    case Pad:
    case Expand:
    case Tile:
    case Resize:
    case Range:
    case ConstantOfShape:
    case RandomUniform:
    case RandomNormal:
    case ScatterAdd:
    case AveragePoolGrad:
    case TopK:
    case MatMul:
    case MatMulInteger:
    case QuantizedMatMul:
    case Conv:
    case ConvInteger:
    case QuantizedConv:
    case ConvTranspose:
    case ConvWeightGrad:
    case MaxPool:
    case MaxPoolIndices:
    case AveragePool:
    case AllGather:
    case RankShard:
    case BlockQuantize: return ExtentRule::Own;
    case If:
    case Loop: return ExtentRule::Body;
    case Unique:
    case NONE: return ExtentRule::Unknown;
  }
  return ExtentRule::Unknown;
}

}  // namespace librt::compiler
