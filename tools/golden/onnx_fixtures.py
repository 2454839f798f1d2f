"""Small ONNX files: crates/index/tests/fixtures/*.onnx. They need no runtime: their headers are read, and damaged.

encoder.onnx    channels last, weights inside, notes
condition.onnx  a condition with two graphs, and a function
external.onnx   weights in a file beside it
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = "crates/index/tests/fixtures"
OPSET = [helper.make_opsetid("", 17)]


def value(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def save(name, graph, functions=(), **notes):
    opset = OPSET + [helper.make_opsetid("local", 1)] * bool(functions)
    model = helper.make_model(graph, opset_imports=opset, ir_version=8, functions=list(functions))
    helper.set_model_props(model, notes)
    onnx.save(model, f"{FOLDER}/{name}.onnx")
    return model


weights = numpy_helper.from_array(np.arange(15, dtype=np.float32).reshape(3, 5), "w")
mean = helper.make_node("ReduceMean", ["m"], ["y"], axes=[1, 2], keepdims=0)
multiply = helper.make_node("MatMul", ["x", "w"], ["m"])
graph = helper.make_graph([multiply, mean], "encoder", [value("x", ["n", 8, 8, 3])], [value("y", ["n", 5])], [weights])
model = save("encoder", graph, mean="[0.5, 0.5, 0.5]", std="[0.25, 0.25, 0.25]", input_size="8")

branch = [helper.make_graph([helper.make_node("Double", ["x"], ["b"], domain="local")], "then", [], [value("b", ["n", 3, 8, 8])]),
          helper.make_graph([helper.make_node("Relu", ["x"], ["b"])], "else", [], [value("b", ["n", 3, 8, 8])])]
constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True), "c"))
nodes = [constant, helper.make_node("If", ["c"], ["m"], then_branch=branch[0], else_branch=branch[1]),
         helper.make_node("ReduceMean", ["m"], ["y"], axes=[2, 3], keepdims=0)]
double = helper.make_function("local", "Double", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], OPSET)
graph = helper.make_graph(nodes, "condition", [value("x", ["n", 3, 8, 8])], [value("y", ["n", 3])])
save("condition", graph, [double])

onnx.save(model, f"{FOLDER}/external.onnx", save_as_external_data=True, location="external.data", size_threshold=0)
